"""The command that moves partitions of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regent.admin.commands import AlterPartitionReassignments
from regent.model.partition import FoundPartition, ReplicaAssignment, TopicPartition
from regent.reconcile.reassignments.stages import MoveStatus


def alter_reassignments(
    targets: Mapping[TopicPartition, tuple[int, ...]],
    moves: Sequence[MoveStatus],
    *,
    throttle: int | None = None,
) -> tuple[AlterPartitionReassignments, ...]:
    """What sends partitions to their targets, unless they are others by then than in the view.

    Args:
        moves: Those of the plan, as the view shows them.
        throttle: As of :class:`~regent.admin.commands.AlterPartitionReassignments`.
    """
    if not targets:
        return ()
    found = {
        move.move.tp: FoundPartition(
            move.move.czxid,
            ReplicaAssignment(
                move.partition.replicas,
                move.partition.adding_replicas,
                move.partition.removing_replicas,
            ),
        )
        for move in moves
        if move.partition is not None and move.move.tp in targets
    }
    return (AlterPartitionReassignments(targets, found, throttle),)
