"""Taking a reassignment back: what it has moved goes back to where it was.

First what is on its way is called back, then what had arrived is moved by the plan in reverse. That
it is being undone is stored before anything goes back; how far that is follows from the plan and
from where its partitions are, as for the way there.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from regent.controller.view import ClusterView
from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.execution import (
    ReassignmentPlan,
    begun_verdict,
    plan_execution,
)
from regent.reconcile.reassignments.finished import look_again
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, MoveStatus, statuses
from regent.reconcile.reassignments.status import planned_verdict, status_in, stored_plan
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import (
    ConditionReason,
    ConditionType,
    enumerate_some,
    find_condition,
    rfc3339,
)
from regent.resources.partition_reassignment import DesiredState, DriftPolicy
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus, Phase

_NAMED: Final = 5
"""Partitions that a message names."""

_PHASES: Final = {
    Phase.EXECUTING: Phase.UNDOING,
    Phase.COMPLETED: Phase.UNDONE,
    Phase.INCOMPLETE: Phase.UNDONE,
}
"""What a phase of the way back is for the resource, where it is another one."""

_REASONS: Final = {
    ConditionReason.MOVING: ConditionReason.UNDOING,
    ConditionReason.CANCELLING: ConditionReason.UNDOING,
}

_CANCELLED: Final = (
    "spec.desiredState is Cancelled: nothing goes back any more; Undone goes on with the rest, and "
    "Running executes the plan again"
)

_READY_PHASES: Final = (Phase.PAUSED, Phase.CANCELLED)


def begin_undoing(request: ReassignmentRequest, plan: MovePlan) -> ReassignmentPlan:
    """Store that it is being undone. Nothing goes back before that is done. From now on it is not
    finished any more, so nobody else moves its partitions."""
    assessment = Assessment(
        Progress.PROGRESSING, ConditionReason.UNDOING, "what was moved goes back"
    )
    return Plan(
        status=_status(
            request,
            plan,
            Phase.UNDOING,
            assessment,
            undo_started_at=rfc3339(request.now),
            finished_at=None,
        ),
        status_first=True,
    )


def begin_again(request: ReassignmentRequest, plan: MovePlan) -> ReassignmentPlan:
    """It shall not be undone any more but be executed: store that, at the end of the line."""
    assessment = Assessment(
        Progress.PROGRESSING, ConditionReason.MOVING, "the execution of the plan begins again"
    )
    return Plan(
        status=_status(
            request,
            plan,
            Phase.EXECUTING,
            assessment,
            undo_started_at=None,
            started_at=rfc3339(request.now),
        ),
        status_first=True,
    )


def undo(request: ReassignmentRequest, plan: MovePlan) -> ReassignmentPlan:
    """What has to be done now for a plan that is being undone."""
    desired = request.resource.spec.desired_state
    is_paused = desired is DesiredState.PAUSED
    there = DesiredState.PAUSED if is_paused else DesiredState.CANCELLED
    calling_back = plan_execution(_asking_for(request, there), plan)
    if _phase(calling_back) in (Phase.CANCELLING, Phase.PAUSING):
        return _under_way(request, plan, calling_back)
    back = way_back(plan, request.view)
    wanted = DesiredState.RUNNING if desired is DesiredState.UNDONE else desired
    going_back = plan_execution(_asking_for(request, wanted), back)
    if _PHASES.get(_phase(going_back)) is Phase.UNDONE:
        return _undone(request, plan, back)
    return _under_way(request, plan, going_back)


def way_back(plan: MovePlan, view: ClusterView) -> MovePlan:
    """The plan in reverse. A partition that was called back on its way, between two stages, goes
    back from where it is. Where there was room for one order, there is for the opposite one."""
    back = MovePlan.of(
        plan.cluster_id,
        (
            Move(m.move.topic, m.move.partition, m.move.czxid, _end_of(m), m.move.replicas)
            for m in statuses(plan, view)
        ),
    )
    if plan.room is None:
        return back
    last = max(plan.room.batches)
    numbers = zip(plan.moves, plan.room.batches, strict=True)
    return back.in_batches(plan.room.brokers, {move.tp: last - batch for move, batch in numbers})


def _end_of(move: MoveStatus) -> tuple[int, ...]:
    """Where a move has led to so far."""
    is_between = move.state is MoveState.PENDING and frozenset(move.stage) != frozenset(
        move.move.replicas
    )
    if is_between and move.partition is not None:
        return move.partition.replicas
    return move.move.target


def _asking_for(request: ReassignmentRequest, desired: DesiredState) -> ReassignmentRequest:
    """What somebody else has moved is left to them. A partition goes back in one step: the stages
    back need not be those of the way there."""
    spec = request.resource.spec
    concurrency = spec.concurrency.model_copy(update={"per_partition_one_by_one": False})
    changed = {
        "desired_state": desired,
        "on_drift": DriftPolicy.SKIP,
        "concurrency": concurrency,
    }
    resource = request.resource.model_copy(update={"spec": spec.model_copy(update=changed)})
    return dataclasses.replace(request, resource=resource)


def _phase(plan: ReassignmentPlan) -> Phase:
    assert plan.status is not None, "an execution always has a status"
    assert plan.status.phase is not None, "an execution always has a phase"
    return plan.status.phase


def _under_way(
    request: ReassignmentRequest, plan: MovePlan, execution: ReassignmentPlan
) -> ReassignmentPlan:
    status = execution.status
    assert status is not None, "an execution always has a status"
    ready = find_condition(status.conditions, ConditionType.READY)
    assert ready is not None, "a status always has the condition Ready"
    reason = next(each for each in ConditionReason if each.value == ready.reason)
    phase = _PHASES.get(_phase(execution), _phase(execution))
    if phase is Phase.CANCELLING and request.resource.spec.desired_state is DesiredState.UNDONE:
        phase = Phase.UNDOING
    progress = Progress.READY if phase in _READY_PHASES else Progress.PROGRESSING
    message = ready.message
    if phase is Phase.UNDOING:
        reason, message = _REASONS.get(reason, reason), f"what was moved goes back: {message}"
    elif phase is Phase.CANCELLED:
        message = _CANCELLED
    return dataclasses.replace(
        execution,
        status=_status(
            request,
            plan,
            phase,
            Assessment(progress, reason, message),
            progress=status.progress,
            summary=status.summary,
            partitions=status.partitions,
        ),
    )


def _undone(request: ReassignmentRequest, plan: MovePlan, back: MovePlan) -> ReassignmentPlan:
    """It is over, for good. Its plan is of no use any more."""
    elsewhere = [
        f"{each.move.tp}: {each.problem}"
        for each in statuses(back, request.view)
        if each.state is MoveState.DRIFTED
    ]
    text = f"{len(plan.moves) - len(elsewhere)} partitions have the replicas that they had before"
    if elsewhere:
        text += (
            f"; {len(elsewhere)} are left where they are, since somebody else has moved them: "
            f"{enumerate_some(elsewhere, limit=_NAMED)}"
        )
    over: ReassignmentPlan = Plan(
        status=_status(
            request,
            plan,
            Phase.UNDONE,
            Assessment(Progress.READY, ConditionReason.REASSIGNMENT_UNDONE, text),
            plan=stored_plan(plan).model_copy(update={"document": ""}),
            finished_at=rfc3339(request.now),
            progress=None,
            summary=None,
            partitions=(),
        )
    )
    return look_again(over)


def _status(
    request: ReassignmentRequest,
    executed: MovePlan,
    phase: Phase,
    assessment: Assessment,
    **fields: Any,
) -> PartitionReassignmentStatus:
    return status_in(
        request,
        phase,
        assessment,
        planned=planned_verdict(executed),
        approved=begun_verdict(executed),
        **fields,
    )
