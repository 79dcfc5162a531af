"""Resources of Regent in a namespace of a test's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from regent.resources.crd import RESOURCES
from sandbox import KubernetesApi, wait_until
from tests.support.kubernetes_client import KubernetesClient

TIMEOUT_S = 180

T = TypeVar("T")

_KINDS = {resource.kind.short_names[0]: resource.kind for resource in RESOURCES}


class Resources:
    """The resources of one kind in one namespace, which is created if it does not exist."""

    def __init__(self, api: KubernetesApi, namespace: str, *, kind: str = "ktopic") -> None:
        self.api = api
        self.namespace = namespace
        self.kind = kind
        self.client = KubernetesClient(api)
        self._collection = _KINDS[kind].collection_path(namespace)
        self.client.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )

    def of(self, kind: str) -> Resources:
        """The resources of another kind in the same namespace."""
        return Resources(self.api, self.namespace, kind=kind)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.api.kubectl(
            "--namespace", self.namespace, *arguments, stdin=stdin, timeout_s=TIMEOUT_S + 10
        )

    def apply(self, *resources: dict[str, Any]) -> None:
        for resource in resources:
            self.client.apply(resource, namespace=self.namespace)

    def create(self, resource: dict[str, Any]) -> None:
        """Create a resource of this kind, or raise CommandError."""
        self.client.create(self._collection, resource)

    def patch(self, name: str, **spec: Any) -> None:
        self.client.patch(f"{self._collection}/{name}", {"spec": spec})

    def delete(self, *names: str, wait: bool = True) -> None:
        for name in names:
            self.client.delete(f"{self._collection}/{name}")
        if wait:
            self.wait_gone(*names)

    def wait_gone(self, *names: str) -> None:
        """Wait until none of the resources exists."""

        def left() -> set[str]:
            return {body["metadata"]["name"] for body in self.all()} & set(names)

        self.wait(left, until=lambda found: not found, describe=f"{', '.join(names)} to be gone")

    def all(self) -> list[dict[str, Any]]:
        return self.client.items(self._collection)

    def get(self, name: str) -> dict[str, Any]:
        return self.client.get(f"{self._collection}/{name}")

    def wait_ready(self, *names: str) -> None:
        """Wait until the condition Ready of each is true."""
        for name in names:
            self.wait_until_true(name, "Ready")

    def wait_until_true(self, name: str, type_: str) -> dict[str, Any]:
        """Wait until a condition is true for the current generation; the status."""
        self.wait_for_condition(name, type_, "True")
        status: dict[str, Any] = self.get(name)["status"]
        return status

    def wait_for_status(self, name: str, describe: str, **expected: Any) -> dict[str, Any]:
        """Wait until the status has these values for the current generation; the status."""

        def look() -> dict[str, Any] | None:
            body = self.get(name)
            status: dict[str, Any] = body.get("status", {})
            is_current = status.get("observedGeneration") == body["metadata"]["generation"]
            return status if is_current else None

        return self.wait(
            look, until=lambda status: expected.items() <= status.items(), describe=describe
        )

    def wait_for_condition(
        self, name: str, type_: str, status: str, reason: str | None = None
    ) -> dict[str, Any]:
        """Wait for a condition of the current generation; the condition."""

        def look() -> dict[str, Any]:
            return self.get(name)

        def holds(body: dict[str, Any]) -> bool:
            found = condition(body, type_)
            return (
                found.get("observedGeneration") == body["metadata"]["generation"]
                and found["status"] == status
                and reason in (None, found["reason"])
            )

        wanted = f"{type_}={status} ({reason}) on {name}"
        return condition(self.wait(look, until=holds, describe=wanted), type_)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The Events about a resource by now. They are sent after its status."""
        items = self.client.items(f"/api/v1/namespaces/{self.namespace}/events")
        return [item for item in items if item["involvedObject"]["name"] == name]

    def wait_for_events(self, name: str, *reasons: str) -> list[str]:
        """Wait until there are Events of these reasons about a resource; the reasons of all."""
        return self.wait(
            lambda: [event["reason"] for event in self.events(name)],
            until=lambda found: set(reasons) <= set(found),
            describe=f"Events {', '.join(reasons)} about {name}",
        )

    @staticmethod
    def wait(look: Callable[[], T | None], *, until: Callable[[T], bool], describe: str) -> T:
        return wait_until(look, until=until, describe=describe, interval_s=0.2)


def topic(name: str, *, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A KafkaTopic manifest; 3 partitions and 3 replicas unless said otherwise."""
    shape = {} if "replicaAssignment" in spec else {"replicas": 3}
    return {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"partitions": 3, **shape, **spec},
    }


def condition(body: dict[str, Any], type_: str) -> dict[str, Any]:
    """A condition of a KafkaTopic, empty if there is none."""
    conditions = body.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == type_), {})
