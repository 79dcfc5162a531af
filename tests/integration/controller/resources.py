"""Resources of Regent in a namespace of a test's own, handled with kubectl as people do."""

from __future__ import annotations

import json
from typing import Any

from sandbox import KubernetesApi, wait_until
from sandbox.errors import CommandError

TIMEOUT_S = 180


class Resources:
    """The resources of one kind in one namespace; KafkaTopics unless said otherwise."""

    def __init__(self, api: KubernetesApi, namespace: str, *, kind: str = "ktopic") -> None:
        self.api = api
        self.namespace = namespace
        self.kind = kind

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.api.kubectl(
            "--namespace", self.namespace, *arguments, stdin=stdin, timeout_s=TIMEOUT_S + 10
        )

    def apply(self, *topics: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(topics)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def patch(self, name: str, **spec: Any) -> None:
        self.kubectl("patch", self.kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def delete(self, *names: str, wait: bool = True) -> None:
        self.kubectl(
            "delete", self.kind, *names, f"--wait={str(wait).lower()}", f"--timeout={TIMEOUT_S}s"
        )

    def get(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.kubectl("get", self.kind, name, "-o", "json"))
        return body

    def wait_ready(self, *names: str) -> None:
        """``kubectl wait --for=condition=Ready``; a failure says what they are instead."""
        try:
            self.kubectl(
                "wait",
                "--for=condition=Ready",
                f"--timeout={TIMEOUT_S}s",
                *(f"{self.kind}/{name}" for name in names),
            )
        except CommandError as error:
            for name in names:
                error.add_note(f"{name}: {self.get(name).get('status')}")
            raise

    def wait_for_status(self, name: str, describe: str, **expected: Any) -> dict[str, Any]:
        """Wait until the status has these values for the current generation; the status."""

        def look() -> dict[str, Any] | None:
            body = self.get(name)
            status: dict[str, Any] = body.get("status", {})
            is_current = status.get("observedGeneration") == body["metadata"]["generation"]
            return status if is_current else None

        return wait_until(
            look,
            until=lambda status: expected.items() <= status.items(),
            timeout_s=TIMEOUT_S,
            describe=describe,
            interval_s=0.2,
        )

    def wait_for_condition(
        self, name: str, type_: str, status: str, reason: str | None = None
    ) -> dict[str, Any]:
        """Wait for a condition of the current generation; the condition."""

        def look() -> dict[str, Any] | None:
            body = self.get(name)
            found = condition(body, type_)
            is_current = found.get("observedGeneration") == body["metadata"]["generation"]
            return found if is_current else None

        return wait_until(
            look,
            until=lambda found: found["status"] == status and reason in (None, found["reason"]),
            timeout_s=TIMEOUT_S,
            describe=f"{type_}={status} ({reason}) on {name}",
            interval_s=0.2,
        )

    def events(self, name: str) -> list[dict[str, Any]]:
        """The Events about a resource by now. They are sent after its status."""
        items = json.loads(self.kubectl("get", "events", "-o", "json"))["items"]
        return [item for item in items if item["involvedObject"]["name"] == name]

    def wait_for_events(self, name: str, *reasons: str) -> list[str]:
        """Wait until there are Events of these reasons about a resource; the reasons of all."""
        return wait_until(
            lambda: [event["reason"] for event in self.events(name)],
            until=lambda found: set(reasons) <= set(found),
            timeout_s=TIMEOUT_S,
            describe=f"Events {', '.join(reasons)} about {name}",
            interval_s=0.2,
        )


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
