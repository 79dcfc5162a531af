"""Whether those that lead after a move have answered that they do.

Until then a partition may be led by nobody: ZooKeeper shows who is to lead it, not who knows that.
A broker that hangs counts as reached until its next answer is overdue.
"""

from __future__ import annotations

from collections.abc import Iterable

from regent.controller.view import ClusterView
from regent.reconcile.reassignments.stages import MoveState, MoveStatus


def awaited_moves(view: ClusterView, moves: Iterable[MoveStatus]) -> list[str]:
    """Partitions that have arrived, and whose leaders have not answered that, for people."""
    if not (view.silent or view.unanswered):
        return []
    return [
        f"{each.move.tp}: leader {each.partition.leader}"
        for each in moves
        if each.state is MoveState.DONE
        and each.partition is not None
        and (topic := view.topics.get(each.move.topic)) is not None
        and view.is_leader_awaited(topic, each.partition)
    ]
