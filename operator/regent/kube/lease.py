"""The Lease that says which replica serves custom resources outside a term.

The replica that ZooKeeper has elected takes it by force: ``/controller`` is fenced by ZooKeeper,
and the Lease fences nothing. The others may take it when it has not been renewed for its duration.
As in client-go, a Lease counts as expired when its record was seen unchanged for that long by the
clock of the observer: clocks of other machines do not matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from regent.kube.client import KubeClient
from regent.kube.errors import KubeConflictError, KubeNotFoundError

_TRANSITIONS_MAX: Final = 2**31 - 1
"""The API server takes no larger number, and nobody takes a Lease any more that has it."""


class Lease:
    """One Lease object, as one replica sees it."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        duration_s: int,
        now: Callable[[], datetime],
    ) -> None:
        """
        Args:
            identity: Differs between all replicas and their lives.
            now: Returns the present, aware.
        """
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._duration_s = duration_s
        self._now = now
        self._seen: object = ()
        self._seen_at = 0.0

    async def take(self, *, by_force: bool) -> bool:
        """Take or renew the Lease; whether it is held afterwards.

        Args:
            by_force: Take it from another holder, too, even before it has expired.

        Raises:
            KubeError: The API server does not answer or refuses. Trying again is safe.
        """
        body = await self._read()
        spec: Mapping[str, Any] = {} if body is None else body.get("spec", {})
        is_ours = spec.get("holderIdentity") == self._identity
        if not (by_force or is_ours or self._has_expired(body)):
            return False
        if body is None:
            return await self._create()
        try:
            await self._client.merge_patch(
                f"{self._collection}/{self._name}", self._renewal(body, is_ours=is_ours)
            )
        except (KubeConflictError, KubeNotFoundError):
            return False  # somebody else was faster
        return True

    async def _create(self) -> bool:
        """Whether it was created. That its namespace does not exist is an error as any other:
        somebody has to know."""
        try:
            await self._client.create(self._collection, self._new())
        except KubeConflictError:
            return False  # somebody else was faster
        return True

    async def release(self) -> None:
        """Clear the holder of the Lease, if it is ours.

        Raises:
            KubeError: As :meth:`take` does.
        """
        body = await self._read()
        if body is None or body.get("spec", {}).get("holderIdentity") != self._identity:
            return
        version = body["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": None}}
        try:
            await self._client.merge_patch(f"{self._collection}/{self._name}", patch)
        except (KubeConflictError, KubeNotFoundError):
            return  # somebody else has it, or it is gone

    async def _read(self) -> dict[str, Any] | None:
        try:
            return await self._client.get(f"{self._collection}/{self._name}")
        except KubeNotFoundError:
            return None

    def _has_expired(self, body: dict[str, Any] | None) -> bool:
        """Whether the record has not changed for the duration of the Lease."""
        record = None if body is None else body["metadata"]["resourceVersion"]
        now = asyncio.get_running_loop().time()
        if record != self._seen:
            self._seen, self._seen_at = record, now
        return now - self._seen_at >= self._duration_s

    def _new(self) -> dict[str, Any]:
        time = self._micro_time()
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": self._duration_s,
                "acquireTime": time,
                "renewTime": time,
                "leaseTransitions": 0,
            },
        }

    def _renewal(self, body: dict[str, Any], *, is_ours: bool) -> dict[str, Any]:
        time = self._micro_time()
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration_s,
            "renewTime": time,
        }
        if not is_ours:
            spec["acquireTime"] = time
            before = int(body.get("spec", {}).get("leaseTransitions") or 0)
            spec["leaseTransitions"] = min(before + 1, _TRANSITIONS_MAX)
        version = body["metadata"]["resourceVersion"]
        return {"metadata": {"resourceVersion": version}, "spec": spec}

    def _micro_time(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
