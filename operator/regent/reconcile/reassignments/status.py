"""The status of a PartitionReassignment: from what was found out to fields and conditions."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from regent.reconcile.checks import Finding
from regent.reconcile.reassignments.copies import CopyFigures, UnknownFigures
from regent.reconcile.reassignments.move_plan import MovePlan, PlanDocumentError, read_plan
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, MoveStatus
from regent.reconcile.verdicts import Assessment, summary_verdicts, unknown_verdict
from regent.resources.conditions import (
    MAX_MESSAGE_LENGTH,
    ConditionReason,
    ConditionStatus,
    ConditionType,
    Verdict,
    enumerate_some,
    rfc3339,
    shorten,
)
from regent.resources.kafka_topic_status import MAX_REPLICAS
from regent.resources.partition_reassignment_status import (
    MAX_PROBLEMS,
    MAX_SAMPLE,
    MoveSample,
    PartitionReassignmentStatus,
    Phase,
    Problem,
    Progress,
    RebalanceStatus,
    StoredPlan,
)

DOMAIN_CONDITIONS: Final = (
    ConditionType.PLAN_READY,
    ConditionType.APPROVED,
    ConditionType.EXECUTING,
    ConditionType.COMPLETED,
)

_URGENCY: Final = {
    MoveState.DRIFTED: 0,
    MoveState.BLOCKED: 1,
    MoveState.RUNNING: 2,
    MoveState.PENDING: 3,
}

_EXECUTING_PHASES: Final = (Phase.EXECUTING, Phase.PAUSING, Phase.CANCELLING, Phase.UNDOING)
_COMPLETED_PHASES: Final = (Phase.COMPLETED, Phase.UNDO_REFUSED)


def planned_verdict(
    plan: MovePlan | StoredPlan, rebalance: RebalanceStatus | None = None
) -> Verdict:
    """``PlanReady`` for a valid plan.

    Args:
        rebalance: What the planner says of it, if it has made it.
    """
    unmet = () if rebalance is None else rebalance.unmet_goals
    message = f"the plan is {plan.hash}"
    if unmet:
        reasons = [f"{goal.goal}: {goal.reason}" for goal in unmet]
        message += f"; it does not meet {enumerate_some(reasons, limit=2)}"
    return Verdict(
        ConditionType.PLAN_READY,
        ConditionStatus.TRUE,
        ConditionReason.PLANNED,
        shorten(message, limit=MAX_MESSAGE_LENGTH),
    )


def unplanned_verdict(reason: ConditionReason, message: str) -> Verdict:
    """``PlanReady`` without a plan."""
    return Verdict(ConditionType.PLAN_READY, ConditionStatus.FALSE, reason, message)


def unapproved_verdict(message: str) -> Verdict:
    """``Approved`` without a plan."""
    return Verdict(ConditionType.APPROVED, ConditionStatus.FALSE, ConditionReason.PLANNING, message)


def course_verdicts(phase: Phase, assessment: Assessment) -> tuple[Verdict, Verdict]:
    """``Executing`` and ``Completed``."""

    def of(type_: ConditionType, holds: bool) -> Verdict:
        status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
        return Verdict(type_, status, assessment.reason, assessment.message)

    return (
        of(ConditionType.EXECUTING, phase in _EXECUTING_PHASES),
        of(ConditionType.COMPLETED, phase in _COMPLETED_PHASES),
    )


def status_in(
    request: ReassignmentRequest,
    phase: Phase,
    assessment: Assessment,
    *,
    planned: Verdict,
    approved: Verdict,
    **fields: Any,
) -> PartitionReassignmentStatus:
    """The status of a resource in a phase."""
    verdicts = (
        *summary_verdicts(assessment),
        planned,
        approved,
        *course_verdicts(phase, assessment),
    )
    return with_verdicts(
        request,
        verdicts,
        phase=phase,
        cluster_id=request.view.cluster_id,
        controller_epoch=request.view.controller_epoch,
        **{"problems": (), **fields},
    )


def blind_status(
    request: ReassignmentRequest, assessment: Assessment
) -> PartitionReassignmentStatus:
    """The status when nothing is known of the cluster: what was last seen stays."""
    unknown = (unknown_verdict(kind, assessment.message) for kind in DOMAIN_CONDITIONS)
    return with_verdicts(request, (*summary_verdicts(assessment), *unknown))


def stored_plan(plan: MovePlan) -> StoredPlan:
    """A plan as the status has it."""
    return StoredPlan(
        hash=plan.hash,
        partitions=len(plan.moves),
        replica_moves=plan.replica_moves,
        leader_changes=plan.leader_changes,
        document=plan.document,
    )


def readable_plan(stored: StoredPlan | None) -> MovePlan | None:
    """The plan that a status has; None: there is none, or it cannot be read."""
    if stored is None:
        return None
    try:
        return read_plan(stored.document, expected_hash=stored.hash)
    except PlanDocumentError:
        return None


def problems_of(findings: Sequence[Finding]) -> tuple[Problem, ...]:
    """Findings as the status has them."""
    return tuple(
        Problem(
            reason=finding.reason,
            field=shorten(finding.field, limit=256),
            message=shorten(finding.message, limit=512),
        )
        for finding in findings[:MAX_PROBLEMS]
    )


def progress_fields(
    moves: Sequence[MoveStatus], copies: CopyFigures | UnknownFigures | None = None
) -> dict[str, Any]:
    """Fields that say how far the moves are.

    Args:
        copies: How many bytes that is; None: nothing was begun.
    """
    counts = Counter(move.state for move in moves)
    total, done = len(moves), counts[MoveState.DONE]
    progress = Progress(
        total=total,
        done=done,
        running=counts[MoveState.RUNNING],
        pending=counts[MoveState.PENDING],
        blocked=counts[MoveState.BLOCKED],
        drifted=counts[MoveState.DRIFTED],
        percent=100 if not total else 100 * done // total,
        **_byte_fields(copies),
    )
    return {
        "progress": progress,
        "summary": f"{done}/{total}",
        "partitions": _sample(moves),
    }


def _byte_fields(copies: CopyFigures | UnknownFigures | None) -> dict[str, Any]:
    match copies:
        case CopyFigures():
            end = copies.estimated_end
            return {
                "bytes_total": copies.bytes_total,
                "bytes_copied": copies.bytes_copied,
                "bytes_per_second": copies.bytes_per_second,
                "estimated_end": None if end is None else rfc3339(end),
            }
        case UnknownFigures() if copies.reason:
            return {"bytes_unknown": shorten(copies.reason, limit=512)}
        case _:
            return {}


def _sample(moves: Sequence[MoveStatus]) -> tuple[MoveSample, ...]:
    """A bounded sample: those with problems first, then those on their way. Of their replicas, too:
    a node that somebody else wrote may have any number."""
    open_moves = [move for move in moves if move.state is not MoveState.DONE]
    chosen = heapq.nsmallest(
        MAX_SAMPLE,
        open_moves,
        key=lambda m: (_URGENCY[m.state], not m.problem, m.move.topic, m.move.partition),
    )
    return tuple(
        MoveSample(
            topic=each.move.topic,
            partition=each.move.partition,
            state=each.state,
            replicas=() if each.partition is None else each.partition.replicas[:MAX_REPLICAS],
            target=each.move.target[:MAX_REPLICAS],
            message=shorten(each.problem, limit=256),
        )
        for each in chosen
    )


def with_verdicts(
    request: ReassignmentRequest, verdicts: tuple[Verdict, ...], **fields: Any
) -> PartitionReassignmentStatus:
    """The status of a resource with other conditions and fields; what else it has stays."""
    resource = request.resource
    return resource.status.with_verdicts(
        verdicts, generation=resource.metadata.generation, now=request.now, **fields
    )
