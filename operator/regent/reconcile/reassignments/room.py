"""Which moves wait until there is room on the disks of their brokers.

The planner has put moves into batches such that every copy has room, with what has left its broker
in earlier batches. That holds whatever else is under way, as long as a copy to a broker that is
short of room begins no sooner than all that leaves this broker in earlier batches has left. Nothing
else of the batches is needed: how much moves at a time is a matter of limits. What is waited for is
always in an earlier batch, so moves never wait for one another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import groupby

from regent.reconcile.reassignments.move_plan import RoomOrder
from regent.reconcile.reassignments.stages import MoveState, MoveStatus


def with_room(order: RoomOrder | None, moves: Sequence[MoveStatus]) -> tuple[MoveStatus, ...]:
    """The moves of a plan, in its order; those without room wait.

    A move that waits for one that is held up is held up for the same reason. One that waits for a
    partition that somebody else has moved, and that is still there, is left out like that one: its
    room does not come.
    """
    if order is None:
        return tuple(moves)
    found = list(moves)
    still: dict[int, MoveStatus] = {}
    in_order = sorted(range(len(found)), key=order.batches.__getitem__)
    for _, batch in groupby(in_order, key=order.batches.__getitem__):
        of_batch = list(batch)
        for i in of_batch:
            found[i] = _waiting(found[i], order, still)
        for i in of_batch:
            for broker in found[i].move.leaving:
                if broker in order.brokers and not _has_left(found[i], broker):
                    still[broker] = max(still.get(broker, found[i]), found[i], key=_weight)
    return tuple(found)


def _waiting(move: MoveStatus, order: RoomOrder, still: Mapping[int, MoveStatus]) -> MoveStatus:
    """A move with what it waits for: of several the one that goes on last."""
    if move.state is not MoveState.PENDING:
        return move
    short = [broker for broker in move.still_adding if broker in order.brokers and broker in still]
    if not short:
        return move
    broker = max(short, key=lambda each: _weight(still[each]))
    first = still[broker]
    if first.state is MoveState.DRIFTED:
        problem = (
            f"broker {broker} has no room for it: {first.move.tp} was to leave the broker first, "
            "and somebody else has moved it"
        )
        return dataclasses.replace(move, state=MoveState.DRIFTED, reason=None, problem=problem)
    if move.reason is not None:
        return dataclasses.replace(move, waits_for_room=True)
    problem = f"it waits for room on broker {broker}, which {first.move.tp} leaves first"
    if first.reason is not None:
        problem += f" ({first.problem})"
    return dataclasses.replace(move, waits_for_room=True, reason=first.reason, problem=problem)


def _has_left(move: MoveStatus, broker: int) -> bool:
    """Whether a broker has no replica of a partition any more. Of a topic that cannot be read
    nobody knows."""
    if move.partition is None:
        return move.state is MoveState.DRIFTED
    return broker not in move.partition.replicas


def _weight(move: MoveStatus) -> int:
    """How long a move may take to make room: 0 for one that goes on."""
    if move.state is MoveState.DRIFTED:
        return 2
    return int(move.reason is not None)
