"""Reassignments that are over: for how long they can be undone, and when they go."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Final

from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.execution import ReassignmentPlan, begun_verdict
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import statuses
from regent.reconcile.reassignments.status import (
    course_verdicts,
    planned_verdict,
    readable_plan,
    with_verdicts,
)
from regent.reconcile.reassignments.throttling import throttled_still
from regent.reconcile.verdicts import Assessment, Progress, summary_verdicts
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    find_condition,
)
from regent.resources.partition_reassignment import DesiredState
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus, Phase

_COMPLETED_PHASES: Final = (Phase.COMPLETED, Phase.UNDO_REFUSED)

UNDONE_BEFORE: Final = "what was moved is back, but for what somebody else has moved since"
"""Of moves that were undone, once the plan is gone that could say how many."""


def is_finished(request: ReassignmentRequest) -> bool:
    """Whether it is over. It stays so, whatever becomes of the cluster or of the resource, unless
    it is to be undone. A phase alone, which somebody may have edited, does not say so."""
    status = request.resource.status
    if status.finished_at is not None:
        return True
    completed = find_condition(status.conditions, ConditionType.COMPLETED)
    said = None if completed is None else completed.status
    return status.phase is Phase.COMPLETED and said is not ConditionStatus.FALSE


def may_be_undone(request: ReassignmentRequest) -> bool:
    """Whether a reassignment that is over is to be undone, and still can be."""
    status = request.resource.status
    return (
        _is_to_be_undone(request)
        and status.phase in _COMPLETED_PHASES
        and status.plan is not None
        and bool(status.plan.document)
        and _window_left_s(request) > 0
    )


def look_again(plan: ReassignmentPlan) -> ReassignmentPlan:
    """The plan by which a reassignment is over: its time begins with that, and what is stored is no
    news for whoever has stored it."""
    return dataclasses.replace(plan, requeue_after_s=0.0)


def plan_finished(request: ReassignmentRequest) -> ReassignmentPlan:
    """What has to be done for a reassignment that is over, and is not undone."""
    ttl_left_s = _ttl_left_s(request)
    if ttl_left_s is not None and ttl_left_s <= 0 and _is_released(request):
        return Plan(is_to_be_deleted=True)
    waits = [each for each in (ttl_left_s,) if each is not None and each > 0]
    status = _shown(request)
    plan = status.plan
    if plan is not None and plan.document:
        window_left_s = _window_left_s(request)
        if window_left_s > 0:
            waits.append(window_left_s)
        else:
            status = status.model_copy(update={"plan": plan.model_copy(update={"document": ""})})
    return Plan(
        status=None if status is request.resource.status else status,
        requeue_after_s=min(waits) if waits else None,
    )


def _is_to_be_undone(request: ReassignmentRequest) -> bool:
    return request.resource.spec.desired_state is DesiredState.UNDONE


def _shown(request: ReassignmentRequest) -> PartitionReassignmentStatus:
    """The status for this generation. One that has been shown is left alone."""
    before = request.resource.status
    if before.phase in _COMPLETED_PHASES:
        phase = Phase.UNDO_REFUSED if _is_to_be_undone(request) else Phase.COMPLETED
        if phase is not before.phase or _was_blind(before):
            return _rebuilt(request, phase, _assessment(request, phase))
    elif before.phase is Phase.UNDONE:
        undone = _undone_assessment(request)
        if not _is_said(before, undone.reason):
            return _rebuilt(request, Phase.UNDONE, undone)
    if request.is_answered:
        return before
    generation = request.resource.metadata.generation
    conditions = tuple(
        condition.model_copy(update={"observed_generation": generation})
        for condition in before.conditions
    )
    return before.model_copy(update={"observed_generation": generation, "conditions": conditions})


def _was_blind(status: PartitionReassignmentStatus) -> bool:
    """Whether it was to be undone while there was no controller, and is not any more."""
    return any(
        each.type == ConditionType.COMPLETED and each.status is ConditionStatus.UNKNOWN
        for each in status.conditions
    )


def _is_said(status: PartitionReassignmentStatus, reason: ConditionReason) -> bool:
    ready = find_condition(status.conditions, ConditionType.READY)
    return ready is not None and ready.reason == reason


def _rebuilt(
    request: ReassignmentRequest, phase: Phase, assessment: Assessment
) -> PartitionReassignmentStatus:
    """The status of a reassignment that is over, in another phase or for another spec."""
    plan = request.resource.status.plan
    verdicts = (
        *summary_verdicts(assessment),
        *(() if plan is None else (planned_verdict(plan), begun_verdict(plan))),
        *course_verdicts(phase, assessment),
    )
    return with_verdicts(request, verdicts, phase=phase)


def _undone_assessment(request: ReassignmentRequest) -> Assessment:
    if request.resource.spec.desired_state is not DesiredState.RUNNING:
        return Assessment(Progress.READY, ConditionReason.REASSIGNMENT_UNDONE, UNDONE_BEFORE)
    return Assessment(
        Progress.STALLED,
        ConditionReason.ALREADY_UNDONE,
        f"it was undone at {request.resource.status.finished_at}, and is not executed again. "
        "Create another PartitionReassignment to move the partitions, or set spec.desiredState to "
        "Undone again",
    )


def _assessment(request: ReassignmentRequest, phase: Phase) -> Assessment:
    finished_at = request.resource.status.finished_at
    if phase is Phase.COMPLETED:
        return Assessment(
            Progress.READY,
            ConditionReason.REASSIGNED,
            f"every partition had the replicas of the plan at {finished_at}",
        )
    window_s = request.resource.spec.undo_window_seconds
    return Assessment(
        Progress.STALLED,
        ConditionReason.UNDO_WINDOW_OVER,
        f"it was completed at {finished_at} and could be undone for {window_s} seconds "
        "(spec.undoWindowSeconds); its moves are not known any more. Set spec.desiredState to "
        "Running again, and create another PartitionReassignment for the way back",
    )


def _age_s(request: ReassignmentRequest) -> float | None:
    """Seconds since it was over; None: nobody knows when that was."""
    finished_at = request.resource.status.finished_at
    if finished_at is None:
        return None
    return (request.now - datetime.fromisoformat(finished_at)).total_seconds()


def _window_left_s(request: ReassignmentRequest) -> float:
    """Seconds for which it can still be undone."""
    age_s = _age_s(request)
    return 0.0 if age_s is None else request.resource.spec.undo_window_seconds - age_s


def _ttl_left_s(request: ReassignmentRequest) -> float | None:
    """Seconds until it is deleted; None: it stays."""
    ttl_s, age_s = request.resource.spec.ttl_seconds_after_finished, _age_s(request)
    return None if ttl_s is None or age_s is None else ttl_s - age_s


def _is_released(request: ReassignmentRequest) -> bool:
    """Whether nothing of it is throttled any more, as far as can be seen. The controller throttles
    and releases; the resource says what is left, so it stays until nothing is."""
    view = request.view
    if not (view.may_act and view.is_complete):
        return False
    plan = readable_plan(request.resource.status.plan)
    return plan is None or not throttled_still(statuses(plan, view))
