"""What other PartitionReassignments do, as a plan for the whole cluster sees it.

Such a plan waits for those that go on: where they lead is not known before their end. One that does
not go on by itself, as it waits for a broker that is not alive, may stay like that for ever. It is
not waited for: its topics stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from regent.controller.view import ClusterView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.claims import ReassignmentClaim
from regent.reconcile.reassignments.hindrances import Hindrance, shown_hindrance
from regent.reconcile.reassignments.move_plan import MovePlan
from regent.reconcile.reassignments.request import HeldUp, UnderWay
from regent.reconcile.reassignments.room import with_room
from regent.reconcile.reassignments.stages import MoveState, MoveStatus, statuses
from regent.reconcile.reassignments.undoing import way_back
from regent.resources.conditions import ConditionReason, enumerate_some
from regent.resources.partition_reassignment import PartitionReassignment

_OPEN: Final = (MoveState.PENDING, MoveState.RUNNING, MoveState.BLOCKED)
_NAMED: Final = 3

_Movers = Mapping[TopicPartition, HeldUp | None]
"""Who of those that began earlier moves a partition; None: one that goes on."""


def under_way(
    resource: PartitionReassignment, claims: Iterable[ReassignmentClaim], view: ClusterView
) -> UnderWay:
    """The others that are executed in the cluster of a view. Between two of their batches, and
    before they elect leaders, nothing moves: they go on all the same. One whose plan cannot be read
    is not executed."""
    others = {claim.uid: claim for claim in claims if claim.cluster_id == view.cluster_id}
    others.pop(resource.metadata.uid, None)
    going_on: list[str] = []
    held_up: list[HeldUp] = []
    movers: dict[TopicPartition, HeldUp | None] = {}
    for claim in sorted(others.values(), key=lambda claim: claim.order):
        plan = claim.plan
        if plan is None or not plan.moves:
            continue
        found = _held_up(claim, plan, view, movers)
        if found is None:
            going_on.append(str(claim))
        else:
            held_up.append(found)
        for move in plan.moves:
            movers.setdefault(move.tp, found)
    return UnderWay(tuple(sorted(going_on)), tuple(sorted(held_up, key=lambda each: each.name)))


def _held_up(
    claim: ReassignmentClaim, plan: MovePlan, view: ClusterView, movers: _Movers
) -> HeldUp | None:
    """What keeps all moves of a plan that are left; None: it goes on."""
    present = way_back(plan, view) if claim.goes_back else plan
    moves = [_with_problem(move, view, movers) for move in statuses(present, view)]
    left = [move for move in with_room(present.room, moves) if move.state in _OPEN]
    problems = list(_problems(claim, left))
    if None in problems or not (left or claim.is_paused):
        return None
    named = [problem for problem in problems if problem]
    why = enumerate_some(named, limit=_NAMED) if named else "it is paused"
    return HeldUp(str(claim), why, tuple(move.move.tp for move in left))


def _problems(claim: ReassignmentClaim, left: Iterable[MoveStatus]) -> Iterator[str | None]:
    """What each move waits for; None: for nothing that is known to stay. Those that a pause keeps
    from beginning are left out."""
    for move in left:
        if claim.is_paused and move.state is not MoveState.RUNNING:
            continue
        yield None if move.reason is None else f"{move.move.tp}: {move.problem}"


def _with_problem(move: MoveStatus, view: ClusterView, movers: _Movers) -> MoveStatus:
    """A move with what keeps it from going on for long, and with nothing else that is known."""
    reason, problem = _problem(move, view, movers) or (None, "")
    return dataclasses.replace(move, reason=reason, problem=problem)


def _problem(move: MoveStatus, view: ClusterView, movers: _Movers) -> Hindrance | None:
    tp = move.move.tp
    if move.state is not MoveState.RUNNING and tp in movers:
        mover = movers[tp]
        if mover is None:
            return None
        problem = f"PartitionReassignment {mover.name} moves it"
        return ConditionReason.REASSIGNMENT_IN_PROGRESS, problem
    return shown_hindrance(view, move)
