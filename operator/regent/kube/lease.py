"""The Lease that says which replica serves custom resources outside a term.

The replica that ZooKeeper has elected takes it by force: ``/controller`` is fenced by ZooKeeper,
and the Lease fences nothing. The others may take it when it has not been renewed for its duration.
Its holder renews it as it has left it, in one request: that it was changed meanwhile is answered as
a conflict, and it is read then.
As in client-go, a Lease counts as expired when its record was seen unchanged for that long by the
clock of the observer: clocks of other machines do not matter.

Two Regents with one Lease would take it from each other for good, and in client mode one of them
would serve nothing, without a word. So its holder says in it what it serves.

Replicas of one Regent may be led to different Kafka clusters: a name in ``zookeeper`` leads
elsewhere since one of them was started, or they are just getting another setting. Each is elected
in its own one. So the holder also says which cluster it controls, and is left the Lease by who
controls another one: both would carry out the same resources.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from regent.kube.client import KubeClient
from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.errors import KubeConflictError, KubeNotFoundError

_TRANSITIONS_MAX: Final = 2**31 - 1
"""The API server takes no larger number, and nobody takes a Lease any more that has it."""

_SERVES: Final = "kafka.regent.dev/serves"
"""Annotation in which the holder of a Lease says what it serves, for people."""

_CLUSTER_ID: Final = "kafka.regent.dev/cluster-id"
"""Annotation with the id of the Kafka cluster that the holder controls; it is missing while the
holder controls none."""

_UNKNOWN_FOR_S: Final = "kafka.regent.dev/cluster-unknown-for-seconds"
"""Annotation that says how long no holder has known the cluster, for the next one."""

_AS_OF: Final = "kafka.regent.dev/as-of"
"""Annotation with the ``renewTime`` that the two above were written with. Former releases of Regent
renew a Lease and leave them as they are."""


class Lease:
    """One Lease object, as one replica sees it.

    Attributes:
        rival: What the present holder says that it serves, if it is another Regent; None: it is a
            replica of this one, or nobody knows.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        serves: str,
        duration_s: int,
        knowledge: ClusterKnowledge,
        now: Callable[[], datetime],
    ) -> None:
        """
        Args:
            identity: Differs between all replicas and their lives.
            serves: What is served, as all replicas of this Regent say it and others do not.
            knowledge: Of the Kafka cluster: written down, and taken over from a former holder.
            now: Returns the present, aware.
        """
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._serves = serves
        self.rival: str | None = None
        self._cluster_of_holder: str | None = None
        self._knowledge = knowledge
        self._duration_s = duration_s
        self._now = now
        self._left_at: str | None = None  # its version, if it is ours as far as is known
        self._seen: object = ()
        self._seen_at = 0.0

    @property
    def is_left(self) -> bool:
        """Whether the holder, a replica of this Regent, controls another Kafka cluster than this
        process, or may: it is not known yet which one that is."""
        return self._cluster_of_holder not in (None, self._cluster_id)

    @property
    def other_cluster(self) -> str | None:
        """Id of the Kafka cluster that the holder controls, if this process controls another one;
        None: that is not so, as far as is known."""
        is_known = self._cluster_id is not None
        return self._cluster_of_holder if is_known and self.is_left else None

    async def take(self, *, by_force: bool) -> bool:
        """Take or renew the Lease; whether it is held afterwards.

        Args:
            by_force: Take it from another holder, too, even before it has expired, unless it
                :attr:`is_left`.

        Raises:
            KubeError: The API server does not answer or refuses. Trying again is safe.
        """
        left_at, self._left_at = self._left_at, None
        if left_at is not None and await self._change(self._renewed(), version=left_at):
            self.rival = self._cluster_of_holder = None
            return True
        return await self._take(by_force=by_force) or (
            # Somebody else was faster, who may control another cluster.
            by_force and not self.is_left and await self._take(by_force=True)
        )

    async def _take(self, *, by_force: bool) -> bool:
        body = await self._read()
        is_ours = _spec(body).get("holderIdentity") == self._identity
        has_expired = self._has_expired(body)
        self.rival = None if is_ours or has_expired else self._named_in(body)
        is_replica = not (is_ours or has_expired or self.rival)
        self._cluster_of_holder = _cluster_in(body) if is_replica else None
        if body is not None and not (is_ours or self.rival or self.other_cluster):
            self._inherit(body)
        by_force = by_force and not self.is_left
        if not (by_force or is_ours or has_expired):
            return False
        if body is None:
            return await self._create()
        spec = self._renewed() if is_ours else self._taken(body)
        # Whatever the version by force: a holder that renews it faster than this one is answered
        # would keep it for good. One that nobody holds is for who is first.
        is_free = has_expired or not _spec(body).get("holderIdentity")
        is_forced = by_force and not is_free
        return await self._change(
            spec, version=None if is_forced else body["metadata"]["resourceVersion"]
        )

    async def _change(self, spec: dict[str, Any], *, version: str | None) -> bool:
        """Whether it was changed, and is ours: not if it has another version, or does not exist."""
        metadata: dict[str, Any] = {"annotations": self._annotations(as_of=spec["renewTime"])}
        if version is not None:
            metadata["resourceVersion"] = version
        patch: dict[str, Any] = {"metadata": metadata, "spec": spec}
        try:
            answer = await self._client.merge_patch(f"{self._collection}/{self._name}", patch)
        except (KubeConflictError, KubeNotFoundError):
            return False  # somebody else was faster
        self._left_at = answer["metadata"]["resourceVersion"]
        return True

    async def _create(self) -> bool:
        """Whether it was created. That its namespace does not exist is an error as any other:
        somebody has to know."""
        try:
            answer = await self._client.create(self._collection, self._new())
        except KubeConflictError:
            return False  # somebody else was faster
        self._left_at = answer["metadata"].get("resourceVersion")
        return True

    async def release(self) -> None:
        """Clear the holder of the Lease, if it is ours.

        Raises:
            KubeError: As :meth:`take` does.
        """
        body = await self._read()
        if body is None or _spec(body).get("holderIdentity") != self._identity:
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

    @property
    def _cluster_id(self) -> str | None:
        return self._knowledge.cluster_id

    def _annotations(self, *, as_of: str) -> dict[str, str | None]:
        return {
            _AS_OF: as_of,
            _SERVES: self._serves,
            _CLUSTER_ID: self._cluster_id,
            _UNKNOWN_FOR_S: f"{self._knowledge.unknown_for_s():.1f}",
        }

    def _inherit(self, body: Mapping[str, Any]) -> None:
        """Since when the cluster is not known. How long ago that was written down is known by the
        own clock only: from when on it has not changed."""
        said = _seconds(_said_of_cluster(body).get(_UNKNOWN_FOR_S))
        if said is not None:
            unchanged_s = asyncio.get_running_loop().time() - self._seen_at
            self._knowledge.inherit(said + unchanged_s)

    def _named_in(self, body: Mapping[str, Any] | None) -> str | None:
        """What the holder serves, if it is something else."""
        if body is None or not _spec(body).get("holderIdentity"):
            return None
        said = _annotations_of(body).get(_SERVES)
        return None if said == self._serves else said

    def _has_expired(self, body: dict[str, Any] | None) -> bool:
        """Whether the record has not changed for the duration of the Lease."""
        record = None if body is None else body["metadata"]["resourceVersion"]
        now = asyncio.get_running_loop().time()
        if record != self._seen:
            self._seen, self._seen_at = record, now
        return now - self._seen_at >= self._duration_s

    def _new(self) -> dict[str, Any]:
        time = self._micro_time()
        annotations = self._annotations(as_of=time)
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self._name,
                "annotations": {k: v for k, v in annotations.items() if v is not None},
            },
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": self._duration_s,
                "acquireTime": time,
                "renewTime": time,
                "leaseTransitions": 0,
            },
        }

    def _renewed(self) -> dict[str, Any]:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration_s,
            "renewTime": self._micro_time(),
        }

    def _taken(self, body: dict[str, Any]) -> dict[str, Any]:
        """It comes from another holder, or from none."""
        renewed = self._renewed()
        transitions = min(_transitions(body) + 1, _TRANSITIONS_MAX)
        return {**renewed, "acquireTime": renewed["renewTime"], "leaseTransitions": transitions}

    def _micro_time(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _transitions(body: Mapping[str, Any]) -> int:
    """How often its holder has changed; 0 if it does not say so in a number."""
    said = _spec(body).get("leaseTransitions")
    return said if type(said) is int and said >= 0 else 0


def _cluster_in(body: Mapping[str, Any] | None) -> str | None:
    """Id of the Kafka cluster that the holder controls, if there is a holder and it says so."""
    if body is None or not _spec(body).get("holderIdentity"):
        return None
    said = _said_of_cluster(body).get(_CLUSTER_ID)
    return said if isinstance(said, str) else None


def _said_of_cluster(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Annotations about the Kafka cluster, if whoever renewed the Lease last has written them."""
    said = _annotations_of(body)
    return said if said.get(_AS_OF) == _spec(body).get("renewTime") else {}


def _annotations_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return body["metadata"].get("annotations") or {}


def _seconds(said: object) -> float | None:
    """What an annotation says, in seconds; None if it is no number of them."""
    try:
        seconds = float(str(said))
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _spec(body: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What it says; nothing if there is none, as in one that somebody has created empty."""
    spec = None if body is None else body.get("spec")
    return spec if isinstance(spec, Mapping) else {}
