"""Whether a broker's pod may be evicted, and what has to be done before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from http import HTTPStatus
from typing import NamedTuple

from regent.kube.eviction.broker_pods import BROKER_ID_ANNOTATION
from regent.kube.eviction.drain_records import BrokerPod, KnownDrain, is_enough, is_worth_noting
from regent.kube.eviction.reviews import ALLOWED, Verdict
from regent.kube.eviction.settings import EvictionSettings
from regent.resources.broker_drain import (
    BrokerDrain,
    DesiredDrainState,
    DrainMode,
    UnreadableDrain,
)


class Decision(NamedTuple):
    """What is answered, once something is written.

    Attributes:
        creates: Whether a BrokerDrain is to be made.
        notes: The BrokerDrain in which it is to be noted that somebody asks; None: in none.
    """

    verdict: Verdict
    creates: bool = False
    notes: KnownDrain | None = None


def decide(
    pod: BrokerPod, drains: Iterable[KnownDrain], settings: EvictionSettings, *, now: datetime
) -> Decision:
    """Decide about the eviction of a pod.

    Args:
        drains: All BrokerDrains of the Kafka cluster.
    """
    drains = tuple(drains)
    own = next((drain for drain in drains if _is_own(drain, pod, settings)), None)
    if own is not None and not _is_usable(own, pod):
        return Decision(_wait(pod, _is_no_use(own)))
    others = [drain for drain in drains if drain is not own and _concerns(drain, pod.broker)]
    candidates = others if own is None else [own, *others]
    if not candidates:
        drain = f"{settings.namespace}/{settings.drain_name(pod.broker)}"
        waiting = _wait(pod, f"BrokerDrain {drain} was created for this eviction")
        return Decision(waiting, creates=True)
    notes = _noted(own, pod, settings, now)
    drained = [drain for drain in candidates if _lets_go(drain, settings.mode)]
    if any(not (pod.is_ready and drain.is_of_unknown_brokers) for drain in drained):
        return Decision(ALLOWED, notes=notes)
    why = _is_another(drained[0], pod) if drained else _waits_for(candidates[0], settings.mode)
    return Decision(_wait(pod, why), notes=notes)


def _is_own(drain: KnownDrain, pod: BrokerPod, settings: EvictionSettings) -> bool:
    metadata = drain.parsed.metadata
    name = settings.drain_name(pod.broker)
    return (metadata.namespace, metadata.name) == (settings.namespace, name)


def _is_usable(own: KnownDrain, pod: BrokerPod) -> bool:
    drain = own.parsed
    is_ours = isinstance(drain, BrokerDrain) and drain.spec.brokers == (pod.broker,)
    return is_ours and own.record is not None


def _is_no_use(own: KnownDrain) -> str:
    """Why a drain of the right name lets nobody go, and what to do."""
    if isinstance(own.parsed, UnreadableDrain) and own.record is not None:
        return (
            f"BrokerDrain {own} cannot be read ({own.parsed.field}: {own.parsed.problem}): bring "
            "Regent up to date, or delete it; then another one is created"
        )
    return (
        f"BrokerDrain {own} should be the one for evictions of its pod, and is none that was made "
        "for that: delete it"
    )


def _concerns(drain: KnownDrain, broker: int) -> bool:
    """Whether a drain does something about a broker."""
    parsed = drain.parsed
    if not isinstance(parsed, BrokerDrain) or parsed.metadata.is_being_deleted:
        return False
    return broker in parsed.spec.brokers and not drain.is_undone


def _lets_go(drain: KnownDrain, mode: DrainMode) -> bool:
    parsed = drain.parsed
    return (
        isinstance(parsed, BrokerDrain)
        and not parsed.metadata.is_being_deleted
        and parsed.spec.desired_state is DesiredDrainState.DRAINED
        and is_enough(parsed.spec.mode, wanted=mode)
        and drain.is_drained
    )


def _is_another(drain: KnownDrain, pod: BrokerPod) -> str:
    """What to do about a pod that runs, and of whose broker the cluster knows nothing."""
    return (
        f"the Kafka cluster has no broker {pod.broker}, as BrokerDrain {drain} says, though pod "
        f"{pod} is Ready; say which broker it is by its annotation {BROKER_ID_ANNOTATION}, or by "
        "the setting eviction_broker_id_label"
    )


def _noted(
    own: KnownDrain | None, pod: BrokerPod, settings: EvictionSettings, now: datetime
) -> KnownDrain | None:
    if own is None or own.record is None or own.parsed.metadata.is_being_deleted:
        return None
    return own if is_worth_noting(own.record, pod, settings, now=now) else None


def _waits_for(drain: KnownDrain, mode: DrainMode) -> str:
    """Why a drain does not let a pod go, and what to do if that needs somebody."""
    parsed = drain.parsed
    assert isinstance(parsed, BrokerDrain)
    if parsed.metadata.is_being_deleted:
        return f"BrokerDrain {drain} is being deleted; then another one is created"
    if parsed.spec.desired_state is DesiredDrainState.UNDONE:
        return f"BrokerDrain {drain} of before is being undone ({drain.news})"
    if not is_enough(parsed.spec.mode, wanted=mode):
        return (
            f"BrokerDrain {drain} has the mode {parsed.spec.mode}, and evictions need {mode}: "
            "delete it"
        )
    if parsed.spec.desired_state is DesiredDrainState.PAUSED:
        return f"BrokerDrain {drain} is paused: set its desiredState to Drained"
    return f"BrokerDrain {drain} is at work ({drain.news})"


def _wait(pod: BrokerPod, why: str) -> Verdict:
    message = f"broker {pod.broker} is not drained yet: {why}"
    return Verdict(HTTPStatus.TOO_MANY_REQUESTS, message)
