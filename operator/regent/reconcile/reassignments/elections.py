"""The leaders of a plan that the planner has made: they are elected once everything has arrived.

A reassignment puts the leader of the plan first, and elects it only if the present one leaves
(``KafkaController.moveReassignedPartitionLeaderIfRequired``). The planner has counted on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from regent.admin.commands import ElectionType, ElectLeaders
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, MoveStatus


def election_of(request: ReassignmentRequest, moves: Iterable[MoveStatus]) -> ElectLeaders | None:
    """The election of the first replicas that do not lead and can; None: there is nothing to be
    elected. One that is not in sync is none: that may take for ever, and Kafka's balance of leaders
    finds it later."""
    if request.resource.spec.rebalance is None:
        return None
    available = request.view.available_brokers
    chosen = tuple(
        status.move.tp
        for status in moves
        if status.state is MoveState.DONE
        and status.partition is not None
        and (first := status.move.target[0]) != status.partition.leader
        and first in status.partition.isr
        and first in available
    )
    return ElectLeaders(ElectionType.PREFERRED, chosen) if chosen else None
