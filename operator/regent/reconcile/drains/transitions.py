"""What a change of a BrokerDrain's status means: Events, and whether it may wait."""

from __future__ import annotations

from typing import Any, Final

from regent.reconcile.plan import EventReason, PlannedEvent
from regent.resources.broker_drain_status import BrokerDrainStatus, DrainPhase
from regent.resources.conditions import ConditionStatus, ConditionType, find_condition

_PHASE_EVENTS: Final = {
    DrainPhase.PAUSED: EventReason.DRAIN_PAUSED,
    DrainPhase.DRAINED: EventReason.DRAIN_COMPLETED,
    DrainPhase.UNDONE: EventReason.DRAIN_UNDONE,
}


def transition_events(
    before: BrokerDrainStatus, after: BrokerDrainStatus
) -> tuple[PlannedEvent, ...]:
    """Events for what has changed from one stored status to the next. Comparing with what was
    stored keeps a restart silent."""
    events: list[PlannedEvent] = []
    if after.started_at is not None and before.started_at is None and after.plan is not None:
        message = f"{after.plan.partitions} partitions begin to move: {after.plan.hash}"
        events.append(PlannedEvent(EventReason.DRAIN_STARTED, message, is_occurrence=True))
    reason = None if after.phase is None else _PHASE_EVENTS.get(after.phase)
    ready = find_condition(after.conditions, ConditionType.READY)
    if reason is not None and after.phase is not before.phase and ready is not None:
        events.append(PlannedEvent(reason, ready.message, is_occurrence=True))
    new = find_condition(after.conditions, ConditionType.STALLED)
    old = find_condition(before.conditions, ConditionType.STALLED)
    if new is not None and new.status is ConditionStatus.TRUE:
        was = None if old is None else (old.status, old.reason)
        if was != (new.status, new.reason):
            events.append(PlannedEvent(new.reason, new.message, is_warning=True))
    return tuple(events)


def is_significant(before: BrokerDrainStatus, after: BrokerDrainStatus) -> bool:
    """Whether a change is more than a detail: anything but how far the moves are."""
    return _headlines(before) != _headlines(after)


def _headlines(status: BrokerDrainStatus) -> tuple[Any, ...]:
    return (
        status.observed_generation,
        tuple((c.type, c.status, c.reason) for c in status.conditions),
        status.cluster_id,
        status.phase,
        None if status.plan is None else status.plan.hash,
        status.started_at,
        status.finished_at,
    )
