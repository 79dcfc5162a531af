"""What a change of a PartitionReassignment's status means: Events, and whether it may wait."""

from __future__ import annotations

from typing import Any, Final

from regent.reconcile.plan import EventReason, PlannedEvent
from regent.resources.conditions import ConditionStatus, ConditionType, find_condition
from regent.resources.partition_reassignment_status import (
    PartitionReassignmentStatus,
    Phase,
)

_PHASE_EVENTS: Final = {
    Phase.PAUSED: EventReason.REASSIGNMENT_PAUSED,
    Phase.CANCELLED: EventReason.REASSIGNMENT_CANCELLED,
    Phase.COMPLETED: EventReason.REASSIGNMENT_COMPLETED,
    Phase.UNDONE: EventReason.REASSIGNMENT_UNDONE,
}


def transition_events(
    before: PartitionReassignmentStatus, after: PartitionReassignmentStatus
) -> tuple[PlannedEvent, ...]:
    """Events for what has changed from one stored status to the next. Comparing with what was
    stored keeps a restart silent."""
    events: list[PlannedEvent] = []
    if after.plan is not None and (before.plan is None or before.plan.hash != after.plan.hash):
        message = f"planned to change {after.plan.partitions} partitions: {after.plan.hash}"
        events.append(PlannedEvent(EventReason.REASSIGNMENT_PLANNED, message))
    if after.started_at is not None and before.started_at is None and after.plan is not None:
        message = f"the execution of the plan {after.plan.hash} begins"
        events.append(PlannedEvent(EventReason.REASSIGNMENT_STARTED, message, is_occurrence=True))
    if after.undo_started_at is not None and before.undo_started_at is None:
        message = "what was moved goes back"
        events.append(
            PlannedEvent(EventReason.REASSIGNMENT_UNDO_STARTED, message, is_occurrence=True)
        )
    reason = None if after.phase is None else _PHASE_EVENTS.get(after.phase)
    ready = find_condition(after.conditions, ConditionType.READY)
    is_news = after.phase is not before.phase and before.phase is not Phase.UNDO_REFUSED
    if reason is not None and is_news and ready is not None:
        events.append(PlannedEvent(reason, ready.message, is_occurrence=True))
    return (*events, *_warnings(before, after))


def _warnings(
    before: PartitionReassignmentStatus, after: PartitionReassignmentStatus
) -> tuple[PlannedEvent, ...]:
    """That it is stalled now, or for another reason. Waiting for approval is the normal course."""
    new = find_condition(after.conditions, ConditionType.STALLED)
    old = find_condition(before.conditions, ConditionType.STALLED)
    if new is None or new.status is not ConditionStatus.TRUE:
        return ()
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return ()
    is_warning = after.phase is not Phase.AWAITING_APPROVAL
    return (PlannedEvent(new.reason, new.message, is_warning=is_warning),)


def is_significant(before: PartitionReassignmentStatus, after: PartitionReassignmentStatus) -> bool:
    """Whether a change is more than a detail: anything but how far the moves are."""
    return _headlines(before) != _headlines(after)


def _headlines(status: PartitionReassignmentStatus) -> tuple[Any, ...]:
    return (
        status.observed_generation,
        tuple((c.type, c.status, c.reason) for c in status.conditions),
        status.cluster_id,
        status.phase,
        None if status.plan is None else status.plan.hash,
        status.started_at,
        status.undo_started_at,
        status.finished_at,
        status.problems,
    )
