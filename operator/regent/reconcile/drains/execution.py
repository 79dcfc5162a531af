"""The moves of a drain, carried out as those of a PartitionReassignment: in the same batches, with
the same limits, and as safe to interrupt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regent.admin.commands import ResourceCommand
from regent.controller.view import ClusterView
from regent.reconcile.drains.request import DrainRequest
from regent.reconcile.reassignments.alterations import alter_reassignments
from regent.reconcile.reassignments.execution import plan_execution
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, MoveStatus, statuses
from regent.resources.conditions import ConditionReason, ConditionType, find_condition
from regent.resources.partition_reassignment import (
    Concurrency,
    DesiredState,
    DriftPolicy,
    PartitionReassignment,
    PartitionReassignmentSpec,
)
from regent.resources.partition_reassignment_status import Phase


@dataclass(frozen=True, slots=True)
class Execution:
    """What has to be done for moves now, and how they are doing.

    Attributes:
        reason: Why they are in this phase; ``message`` says it for people.
        fields: Progress as a status has it.
    """

    phase: Phase
    reason: ConditionReason
    message: str
    commands: tuple[ResourceCommand, ...]
    requeue_after_s: float | None
    fields: dict[str, Any]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be moved. What somebody else has moved is left to them."""
        return self.phase in (Phase.COMPLETED, Phase.INCOMPLETE)


def execute(request: DrainRequest, plan: MovePlan, desired: DesiredState) -> Execution:
    """What has to be done for a plan whose execution has begun."""
    result = plan_execution(_as_reassignment(request, desired), plan)
    status = result.status
    assert status is not None, "an execution always has a status"
    assert status.phase is not None, "an execution always has a phase"
    ready = find_condition(status.conditions, ConditionType.READY)
    assert ready is not None, "a status always has the condition Ready"
    return Execution(
        phase=status.phase,
        reason=next(reason for reason in ConditionReason if reason.value == ready.reason),
        message=ready.message,
        commands=result.commands,
        requeue_after_s=result.requeue_after_s,
        fields={
            "progress": status.progress,
            "summary": status.summary,
            "partitions": status.partitions,
        },
    )


def call_back(request: DrainRequest, moves: Sequence[MoveStatus]) -> tuple[ResourceCommand, ...]:
    """What takes back moves to brokers that are dead and that another drain has cordoned: nobody
    expects them to return, and without them the moves never arrive. They are planned anew then."""
    given_up = frozenset(request.view.cordoned).difference(request.view.brokers)
    if not given_up:
        return ()
    as_reassignment = _as_reassignment(request, DesiredState.RUNNING)
    back = {
        move.move.tp: move.stage
        for move in moves
        if move.state is MoveState.RUNNING
        and move.partition is not None
        and not given_up.isdisjoint(move.partition.adding_replicas)
        and as_reassignment.may_ask_for(move.move.tp, move.stage)
    }
    return alter_reassignments(back, moves)


def in_present_order(plan: MovePlan, view: ClusterView) -> MovePlan:
    """The plan with the present order of replicas as the target of partitions that have arrived.

    Another drain, or somebody by hand, may have chosen another preferred leader since. Who moves
    replicas would choose again, and the two would take the partition from each other without end.
    """
    reordered = {
        each.move.tp: each.partition.replicas
        for each in statuses(plan, view)
        if each.state is MoveState.PENDING
        and each.partition is not None
        and frozenset(each.partition.replicas) == frozenset(each.move.target)
        and frozenset(each.move.replicas) != frozenset(each.move.target)
    }
    if not reordered:
        return plan
    moves = (move._replace(target=reordered.get(move.tp, move.target)) for move in plan.moves)
    return MovePlan.of(plan.cluster_id, moves)


def reversed_plan(plan: MovePlan) -> MovePlan:
    """The plan that takes everything back."""
    return MovePlan.of(
        plan.cluster_id,
        (Move(m.topic, m.partition, m.czxid, m.target, m.replicas) for m in plan.moves),
    )


def _as_reassignment(request: DrainRequest, desired: DesiredState) -> ReassignmentRequest:
    spec, limits = request.resource.spec, request.resource.spec.concurrency
    return ReassignmentRequest(
        resource=PartitionReassignment(
            metadata=request.resource.metadata,
            spec=PartitionReassignmentSpec(
                desired_state=desired,
                concurrency=Concurrency(per_broker=limits.per_broker, total=limits.total),
                throttle=spec.throttle,
                on_drift=DriftPolicy.SKIP,
                racks=spec.racks,
            ),
        ),
        view=request.view,
        topics=(),
        configs={},
        moving=request.moving,
        sent=request.sent,
        refused=request.refused,
        moved_by_others=request.moved_by_others,
        copies=request.copies,
        waits_for_leaders=False,  # the drain itself does, for what it has not moved, too
        seen_at=request.seen_at,
        monotonic_s=request.monotonic_s,
        now=request.now,
        attempts=request.attempts,
        absence=request.absence,
    )
