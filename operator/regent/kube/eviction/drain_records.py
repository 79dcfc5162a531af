"""The BrokerDrains that evictions wait for, and what is written down in those made for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Self

from regent.kube.eviction.broker_pods import is_name
from regent.kube.eviction.settings import EvictionSettings
from regent.resources.base import ClusterRef
from regent.resources.broker_drain import (
    BrokerDrain,
    BrokerDrainSpec,
    DesiredDrainState,
    DrainMode,
    UnreadableDrain,
    parse_broker_drain,
)
from regent.resources.broker_drain_status import DrainPhase
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    find_condition,
)
from regent.resources.kind import API_VERSION, GROUP

MADE_FOR_LABEL: Final = f"{GROUP}/made-for"
MADE_FOR_EVICTION: Final = "eviction"
_POD_ANNOTATION: Final = f"{GROUP}/evicted-pod"
_UID_ANNOTATION: Final = f"{GROUP}/evicted-pod-uid"
_ASKED_ANNOTATION: Final = f"{GROUP}/eviction-asked-at"


class BrokerPod(NamedTuple):
    """A broker's pod that somebody wants to evict."""

    namespace: str
    name: str
    uid: str
    broker: int
    is_ready: bool = True

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class EvictionRecord(NamedTuple):
    """What a BrokerDrain that was made for an eviction remembers.

    Attributes:
        namespace: Of the pod.
        uid: Of the pod that was to be evicted last.
        asked_at: When somebody asked for that, to within some seconds. One that is still to come,
            as the clock was set back or somebody has changed it, counts as one as long ago.
    """

    namespace: str
    pod: str
    uid: str
    asked_at: datetime

    def age(self, *, now: datetime) -> timedelta:
        """How long ago somebody asked."""
        return abs(now - self.asked_at)

    @classmethod
    def of(cls, pod: BrokerPod, *, now: datetime) -> Self:
        """What is to be remembered now that somebody asks."""
        return cls(pod.namespace, pod.name, pod.uid, now)

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> Self | None:
        """None if the object was not made for an eviction, or somebody has changed what it says."""
        if (metadata.get("labels") or {}).get(MADE_FOR_LABEL) != MADE_FOR_EVICTION:
            return None
        annotations = metadata.get("annotations") or {}
        namespace, _, pod = annotations.get(_POD_ANNOTATION, "").partition("/")
        uid = annotations.get(_UID_ANNOTATION, "")
        try:
            asked_at = datetime.fromisoformat(annotations.get(_ASKED_ANNOTATION, ""))
        except ValueError:
            return None
        if not (is_name(namespace) and is_name(pod) and uid) or asked_at.tzinfo is None:
            return None
        return cls(namespace, pod, uid, asked_at)

    def annotations(self) -> dict[str, str]:
        """The annotations that say it."""
        return {
            _POD_ANNOTATION: f"{self.namespace}/{self.pod}",
            _UID_ANNOTATION: self.uid,
            _ASKED_ANNOTATION: self.asked_at.astimezone(UTC).isoformat(timespec="seconds"),
        }


@dataclass(frozen=True, slots=True)
class KnownDrain:
    """A BrokerDrain as the API server has it.

    Attributes:
        parsed: It, as far as this Regent can read it.
        record: What it was made for; None: not for an eviction.
    """

    parsed: BrokerDrain | UnreadableDrain
    record: EvictionRecord | None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """Read an object of the API.

        Raises:
            pydantic.ValidationError: Not even the metadata can be read.
        """
        return cls(parse_broker_drain(body), EvictionRecord.read(body["metadata"]))

    def __str__(self) -> str:
        metadata = self.parsed.metadata
        return f"{metadata.namespace}/{metadata.name}"

    @property
    def is_current(self) -> bool:
        """Whether the status is about the spec that there is."""
        return self.parsed.status.observed_generation == self.parsed.metadata.generation

    @property
    def is_drained(self) -> bool:
        """Whether the status says that the brokers are drained."""
        return self.is_current and self._says(ConditionType.DRAINED) is ConditionStatus.TRUE

    @property
    def is_of_unknown_brokers(self) -> bool:
        """Whether the status says that the cluster may have none of the brokers."""
        drained = find_condition(self.parsed.status.conditions, ConditionType.DRAINED)
        return drained is not None and drained.reason == ConditionReason.BROKERS_UNKNOWN

    @property
    def is_undone(self) -> bool:
        """Whether everything is back, and the drain does nothing any more."""
        return (
            isinstance(self.parsed, BrokerDrain)
            and self.parsed.spec.desired_state is DesiredDrainState.UNDONE
            and self.is_current
            and self.parsed.status.phase is DrainPhase.UNDONE
        )

    @property
    def news(self) -> str:
        """How it is doing, as a part of a sentence."""
        ready = find_condition(self.parsed.status.conditions, ConditionType.READY)
        if ready is None or not self.is_current:
            return "no Regent has looked at it yet"
        blockers = self.parsed.status.blockers
        blocked = ""
        if blockers:
            first = blockers[0]
            where = f"{first.topic}-{first.partition}: " if first.topic else ""
            blocked = f" ({len(blockers)} blockers; {where}{first.reason}: {first.message})"
        return f"{ready.reason}: {ready.message}{blocked}"

    def _says(self, type_: ConditionType) -> ConditionStatus | None:
        condition = find_condition(self.parsed.status.conditions, type_)
        return None if condition is None else condition.status


def is_enough(mode: DrainMode, *, wanted: DrainMode) -> bool:
    """Whether a drain of one mode does what another one does."""
    return mode is wanted or mode is DrainMode.REPLICAS


def new_drain(pod: BrokerPod, settings: EvictionSettings, *, now: datetime) -> dict[str, Any]:
    """The BrokerDrain that is made for an eviction."""
    name = settings.cluster_name
    spec = BrokerDrainSpec(
        brokers=(pod.broker,),
        mode=settings.mode,
        cluster_ref=None if name is None else ClusterRef(name=name),
    )
    return {
        "apiVersion": API_VERSION,
        "kind": BrokerDrain.kind.kind,
        "metadata": {
            "name": settings.drain_name(pod.broker),
            "namespace": settings.namespace,
            "labels": {MADE_FOR_LABEL: MADE_FOR_EVICTION},
            "annotations": EvictionRecord.of(pod, now=now).annotations(),
        },
        # mode: the default of the definition may be another one some day
        "spec": {**spec.to_api(), "mode": str(settings.mode)},
    }


def is_worth_noting(
    record: EvictionRecord, pod: BrokerPod, settings: EvictionSettings, *, now: datetime
) -> bool:
    """Whether what is remembered is out of date now that somebody asks for an eviction."""
    same = (record.namespace, record.pod, record.uid) == (pod.namespace, pod.name, pod.uid)
    return not same or record.age(now=now) >= timedelta(seconds=settings.noted_interval_s)
