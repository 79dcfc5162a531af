"""To how much the copies of a plan are throttled.

The controller throttles what begins, and removes that when it has arrived or was cancelled,
whatever becomes of the resource. What is left to be said here is which rate.
"""

from __future__ import annotations

from collections.abc import Sequence

from regent.admin.commands import UNTHROTTLED, AlterPartitionReassignments
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.alterations import alter_reassignments
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, MoveStatus


def wanted_rate(request: ReassignmentRequest) -> int | None:
    """Bytes a second for copies that begin; None: they are not throttled."""
    throttle = request.resource.spec.throttle
    return None if throttle is None else throttle.bytes_per_second


def rate_changes(
    request: ReassignmentRequest, moves: Sequence[MoveStatus]
) -> tuple[AlterPartitionReassignments, ...]:
    """What gives copies that are under way another rate, since the resource has another one now."""
    targets = {
        move.move.tp: move.goal
        for move in moves
        if has_another_rate(request, move) and request.may_ask_for(move.move.tp, move.goal)
    }
    return alter_reassignments(targets, moves, throttle=_rate_to_ask_for(request))


def _rate_to_ask_for(request: ReassignmentRequest) -> int:
    wanted = wanted_rate(request)
    return UNTHROTTLED if wanted is None else wanted


def has_another_rate(request: ReassignmentRequest, move: MoveStatus) -> bool:
    """Whether copies are under way that are throttled otherwise than the resource has it.

    Those that another resource moves to the same target have the rate of that one.
    """
    partition = move.partition
    return (
        move.state is MoveState.RUNNING
        and request.waits_for(move.move) is None
        and partition is not None
        and bool(partition.adding_replicas)
        and partition.throttle != wanted_rate(request)
    )


def throttled_still(moves: Sequence[MoveStatus]) -> list[TopicPartition]:
    """Partitions that do not move any more and are throttled nevertheless."""
    return [
        move.move.tp
        for move in moves
        if move.partition is not None
        and move.partition.throttle is not None
        and not move.partition.adding_replicas
    ]
