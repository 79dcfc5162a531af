"""What keeps a move from going on."""

from __future__ import annotations

import dataclasses
from typing import Final

from regent.controller.view import ClusterView, PartitionView
from regent.reconcile.reassignments.copies import Copy, stalled_for_s
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, MoveStatus
from regent.reconcile.reassignments.throttling import has_another_rate
from regent.resources.conditions import ConditionReason

HINDRANCES: Final = (
    ConditionReason.BROKERS_UNAVAILABLE,
    ConditionReason.BROKERS_CORDONED,
    ConditionReason.COPIES_STALLED,
    ConditionReason.RESOURCE_CONFLICT,
    ConditionReason.REASSIGNMENT_IN_PROGRESS,
    ConditionReason.MOVES_REFUSED,
    ConditionReason.TOPICS_UNREADABLE,
)
"""Reasons why moves do not go on. The first one that applies to any of them is shown."""

Hindrance = tuple[ConditionReason, str]
"""Why a move does not go on: for conditions, and for people."""


def blocked_by_another(request: ReassignmentRequest, move: MoveStatus) -> MoveStatus:
    """The pending move; blocked if another resource keeps it from beginning."""
    waits_for, undone_by = request.waits_for(move.move), request.undone_by(move.move)
    if waits_for is not None:
        reason, problem = ConditionReason.REASSIGNMENT_IN_PROGRESS, waits_for
    elif undone_by is not None:
        reason, problem = ConditionReason.RESOURCE_CONFLICT, undone_by
    else:
        return move
    return dataclasses.replace(move, state=MoveState.BLOCKED, reason=reason, problem=problem)


def with_hindrance(request: ReassignmentRequest, move: MoveStatus) -> MoveStatus:
    """The move with what keeps it from going on."""
    if move.state not in (MoveState.PENDING, MoveState.RUNNING):
        return move
    found = (
        shown_hindrance(request.view, move)
        or _refusal(request, move)
        or _copy_without_growth(request, move)
    )
    if found is None:
        return move
    reason, problem = found
    return dataclasses.replace(move, reason=reason, problem=problem)


def shown_hindrance(view: ClusterView, move: MoveStatus) -> Hindrance | None:
    """What keeps a move from going on, as far as a view shows it; None: nothing, or it is neither
    pending nor running."""
    if move.state not in (MoveState.PENDING, MoveState.RUNNING):
        return None
    return _dead_brokers(view, move) or _cordoned_brokers(view, move) or _stalled_copy(move)


def _dead_brokers(view: ClusterView, move: MoveStatus) -> Hindrance | None:
    goal = move.goal or move.move.target
    present = () if move.state is MoveState.RUNNING else move.stage
    dead = [b for b in goal if b not in present and b not in view.brokers]
    return (ConditionReason.BROKERS_UNAVAILABLE, f"brokers {dead} are not alive") if dead else None


def _cordoned_brokers(view: ClusterView, move: MoveStatus) -> Hindrance | None:
    """It would be moved off again."""
    if move.state is not MoveState.PENDING:
        return None
    cordoned = [b for b in move.still_adding if b in view.cordoned]
    if not cordoned:
        return None
    return ConditionReason.BROKERS_CORDONED, f"a BrokerDrain has cordoned brokers {cordoned}"


def _stalled_copy(move: MoveStatus) -> Hindrance | None:
    """A copy that is under way comes from the leader, and is made by the broker that gets it."""
    partition = move.partition
    if move.state is not MoveState.RUNNING or partition is None or not partition.adding_replicas:
        return None
    if not partition.has_leader:
        return ConditionReason.COPIES_STALLED, "it has no leader that its records can come from"
    refused = _refused_copies(partition)
    if refused:
        return ConditionReason.COPIES_STALLED, f"refused by {', '.join(refused)}"
    failed = [b for b in partition.adding_replicas if b in partition.on_failed_dirs]
    if failed:
        return (
            ConditionReason.COPIES_STALLED,
            f"the log directory of its replica has failed on brokers {failed}",
        )
    unreached = sorted({*partition.uninformed} & {partition.leader, *partition.adding_replicas})
    if unreached:
        return ConditionReason.COPIES_STALLED, f"the controller does not reach brokers {unreached}"
    return None


def _copy_without_growth(request: ReassignmentRequest, move: MoveStatus) -> Hindrance | None:
    """A broker that gets a copy has got nothing for minutes."""
    partition = move.partition
    if move.state is not MoveState.RUNNING or partition is None:
        return None
    seen = request.copies.partitions.get(move.move.tp)
    for broker_id in partition.adding_replicas:
        stalled_s = stalled_for_s(Copy(move.move.tp, broker_id), request.copies)
        if stalled_s is None or seen is None or broker_id in partition.isr:
            continue
        of = "" if seen.total is None else f" of {seen.total:,}"
        text = (
            f"broker {broker_id} has got nothing of it from broker {partition.leader} for "
            f"{stalled_s // 60:.0f} minutes; it has {seen.sizes[broker_id]:,}{of} bytes"
        )
        if partition.throttle is not None:
            text += f", and its copies are throttled to {partition.throttle:,} bytes a second"
        return ConditionReason.COPIES_STALLED, text
    return None


def _refused_copies(partition: PartitionView) -> list[str]:
    """Brokers that refuse to send or to receive copies."""
    concerned = (partition.leader, *partition.adding_replicas)
    return [
        f"broker {broker_id} ({error})"
        for broker_id, error in partition.refusals
        if broker_id in concerned
    ]


def _refusal(request: ReassignmentRequest, move: MoveStatus) -> Hindrance | None:
    """What was asked of the controller in vain: to begin, to go back, or another throttle."""
    refused = request.refused.get(move.move.tp)
    if refused is None:
        return None
    if (
        move.state is MoveState.PENDING
        or refused.target == move.stage
        or (refused.target == move.goal and has_another_rate(request, move))
    ):
        return ConditionReason.MOVES_REFUSED, refused.message
    return None
