"""KafkaTopics as the API server has them, and a store of one object in its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from regent.kube.claim_index import ClaimIndex
from regent.kube.client import KubeClient
from regent.kube.errors import KubeConflictError, KubeNotFoundError
from regent.kube.kafka_topics import TopicIndex
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.reconcile.topics.kind import KAFKA_TOPIC


def body(name: str = "orders", version: str = "1", **changes: Any) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": changes.pop("uid", f"uid-{name}"),
        "generation": changes.pop("generation", 1),
        "resourceVersion": version,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **changes.pop("metadata", {}),
    }
    status = changes.pop("status", {})
    return {
        "metadata": metadata,
        "spec": {"partitions": 1, "replicas": 1, **changes},
        "status": status,
    }


def topic_cache() -> tuple[ObjectCache, TopicIndex]:
    index: TopicIndex = ClaimIndex(KAFKA_TOPIC)
    return ObjectCache("KafkaTopic", index), index


def key(name: str = "orders") -> ObjectKey:
    return ObjectKey("KafkaTopic", "shop", name)


class Store(KubeClient):
    """One object and its versions, in the place of the API server."""

    def __init__(self, stored: dict[str, Any] | None) -> None:
        super().__init__(max_connections=1, request_timeout_s=1)
        self.stored = stored
        self.before_write: list[Callable[[], None]] = []
        self.created: list[dict[str, Any]] = []
        self.patches: list[Any] = []
        self.unknown_fields: frozenset[str] = frozenset()
        """Fields of the status, or within its fields (``plan.hash``), that the definition does not
        know: they are dropped."""
        self.webhook: Callable[[dict[str, Any]], None] = lambda stored: None
        """Changes what is about to be stored, as a mutating admission webhook does."""

    def change(self, **metadata: Any) -> None:
        """Somebody else changes the object."""
        assert self.stored is not None
        self.stored["metadata"] |= metadata
        self.stored["metadata"]["resourceVersion"] = str(self._version + 1)

    @property
    def _version(self) -> int:
        assert self.stored is not None
        return int(self.stored["metadata"]["resourceVersion"])

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content_type: str = "application/json",
        query: Any = None,
    ) -> dict[str, Any]:
        if method == "POST":
            self.created.append(body)
            return {}
        if method in ("PATCH", "DELETE") and self.before_write:
            self.before_write.pop(0)()
        if "/customresourcedefinitions/" in path:
            return {"metadata": {"name": path.rpartition("/")[2]}}
        if self.stored is None:
            raise KubeNotFoundError("gone", status=404)
        if method == "DELETE":
            self._delete(body["preconditions"])
            return {}
        if method == "PATCH":
            self.patches.append(body)
            self._patch(body, is_status=path.endswith("/status"))
        copied: dict[str, Any] = json.loads(json.dumps(self.stored))
        return copied

    def _delete(self, preconditions: Any) -> None:
        assert self.stored is not None
        metadata = self.stored["metadata"]
        if preconditions != {name: metadata[name] for name in ("uid", "resourceVersion")}:
            raise KubeConflictError("changed", status=409)
        self.stored = None

    def _patch(self, patch: Any, *, is_status: bool) -> None:
        assert self.stored is not None
        if patch["metadata"]["resourceVersion"] != str(self._version):
            raise KubeConflictError("changed", status=409)
        assert is_status == ("status" in patch)
        if not is_status:
            self.stored["metadata"]["finalizers"] = patch["metadata"]["finalizers"]
        else:
            _merge(self.stored["status"], _without(patch["status"], self.unknown_fields))
        self.webhook(self.stored)
        self.change()


def _without(part: dict[str, Any], unknown: frozenset[str], prefix: str = "") -> dict[str, Any]:
    return {
        name: _without(value, unknown, f"{prefix}{name}.") if isinstance(value, dict) else value
        for name, value in part.items()
        if prefix + name not in unknown
    }


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> None:
    """Apply a JSON merge patch (RFC 7386)."""
    for name, value in patch.items():
        if value is None:
            del document[name]
        elif isinstance(value, dict) and isinstance(document.get(name), dict):
            _merge(document[name], value)
        else:
            document[name] = value
