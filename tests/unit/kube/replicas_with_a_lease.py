"""Replicas that share a Lease, and the API server as far as that goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from regent.controller.view import ClusterView
from regent.kube.client import KubeClient
from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.errors import KubeApiError, KubeConflictError, KubeNotFoundError
from regent.kube.leadership import Leadership
from regent.kube.lease import Lease
from tests.support.viewed_port import ViewedPort
from tests.unit.kube.jumping_clock import elapse

DURATION_S = 15


class LeaseServer(KubeClient):
    """The API server as far as Leases go: one object, optimistic locking."""

    def __init__(self) -> None:
        super().__init__(max_connections=1, request_timeout_s=1)
        self.body: dict[str, Any] | None = None
        self.version = 0
        self.refuses = False
        self.has_namespace = True
        self.delay_s = 0.0

    @property
    def holder(self) -> str | None:
        return None if self.body is None else self.body["spec"].get("holderIdentity")

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        if self.delay_s:
            await elapse(self.delay_s)
        if self.refuses:
            raise KubeApiError("leases are forbidden", status=403)
        body: Mapping[str, Any] = options.get("body") or {}
        if method == "POST":
            if not self.has_namespace:
                raise KubeNotFoundError('namespaces "kafka" not found', status=404)
            if self.body is not None:
                raise KubeConflictError("exists", status=409)
            return self._store({**body["metadata"]}, dict(body["spec"]))
        if self.body is None:
            raise KubeNotFoundError("no such lease", status=404)
        if method == "PATCH":
            metadata = body.get("metadata", {})
            if metadata.get("resourceVersion", str(self.version)) != str(self.version):
                raise KubeConflictError("changed", status=409)
            return self._store(
                {**self.body["metadata"], **metadata}, {**self.body["spec"], **body["spec"]}
            )
        return self.body

    def edit(self, **spec: Any) -> None:
        """Somebody changes the Lease by hand."""
        assert self.body is not None
        self._store(self.body["metadata"], {**self.body["spec"], **spec})

    def _store(self, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        transitions = spec.get("leaseTransitions", 0)
        if isinstance(transitions, int) and transitions >= 2**31:
            raise KubeApiError("it does not fit into int32", status=400)
        self.version += 1
        self.body = {"metadata": {**metadata, "resourceVersion": str(self.version)}, "spec": spec}
        return self.body


class Replica:
    """One process."""

    def __init__(self, server: KubeClient, name: str, *, serves: str = "all") -> None:
        self.name = name
        self.rival: str | None = None
        self.other_cluster: str | None = None
        self.port = ViewedPort()
        self.knowledge = ClusterKnowledge(self.port)
        self.leadership = Leadership(
            duration_s=DURATION_S,
            retry_s=2,
            on_rival=partial(setattr, self, "rival"),
            on_other_cluster=partial(setattr, self, "other_cluster"),
        )
        lease = Lease(
            server,
            namespace="kafka",
            name="regent",
            identity=name,
            serves=serves,
            duration_s=DURATION_S,
            knowledge=self.knowledge,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        )
        self.task = asyncio.create_task(self.leadership.run(lease))

    @property
    def serves(self) -> bool:
        return self.leadership.serving.is_on

    def lead(self, cluster_id: str, *, is_complete: bool = True) -> None:
        """It is the controller of a Kafka cluster."""
        self.port.view = ClusterView(is_active=True, is_complete=is_complete, cluster_id=cluster_id)
        self.leadership.set_elected(True)

    def stand_by(self) -> None:
        self.port.view = ClusterView()
        self.leadership.set_elected(False)

    async def end(self) -> None:
        """The process ends in an orderly way."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def replicas() -> tuple[LeaseServer, Replica, Replica]:
    """Two processes with the same resources."""
    server = LeaseServer()
    return server, Replica(server, "one"), Replica(server, "two")
