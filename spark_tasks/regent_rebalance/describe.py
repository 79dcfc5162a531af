"""Adds to a plan what it does to each broker of its snapshot, and when. Pure, as planning is."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from regent_rebalance.batches import schedule_of
from regent_rebalance.details import DEAD, DRAINED, EXCLUDED, KEPT, BrokerLoad, Details, Load
from regent_rebalance.goals import (
    LEADER_DISTRIBUTION,
    REPLICA_DISTRIBUTION,
    Goals,
    balance_limits,
)
from regent_rebalance.log_dirs import log_dir_notes
from regent_rebalance.moves import Moves, disk_used, moves_of
from regent_rebalance.plan import Plan
from regent_rebalance.problem import already_met
from regent_rebalance.ragged import Ints
from regent_rebalance.schedule import Limits
from regent_rebalance.snapshot import UNKNOWN, Snapshot


def described(
    snapshot: Snapshot,
    goals: Goals,
    plan: Plan,
    limits: Limits,
    *,
    assumptions: tuple[str, ...] = (),
) -> Plan:
    """The plan with its details. Its changes and its hash stay as they are.

    Raises InvalidInputError for a plan that was made from another snapshot.
    """
    moves = moves_of(snapshot, goals, plan.changes)
    brokers = _brokers(snapshot, goals, plan, moves)
    keeping = sum(broker.state in (KEPT, EXCLUDED) for broker in brokers)
    replicas = sum(broker.after.replicas for broker in brokers)
    schedule = schedule_of(snapshot, moves, limits)
    notes = (*schedule.notes, *log_dir_notes(snapshot, goals, moves, schedule.batch))
    details = Details(
        assumptions=assumptions,
        replica_limits=balance_limits(replicas, keeping, goals.replica_balance)
        if goals.has(REPLICA_DISTRIBUTION)
        else None,
        leader_limits=balance_limits(snapshot.partitions, keeping, goals.leader_balance)
        if goals.has(LEADER_DISTRIBUTION)
        else None,
        brokers=brokers,
        schedule=dataclasses.replace(schedule, notes=notes),
        notes=(*snapshot.notes, *already_met(snapshot, goals)),
    )
    return dataclasses.replace(plan, details=details)


def _brokers(snapshot: Snapshot, goals: Goals, plan: Plan, moves: Moves) -> tuple[BrokerLoad, ...]:
    brokers, count = snapshot.brokers, len(snapshot.brokers)
    led = snapshot.leader != UNKNOWN
    before = (
        _count(snapshot.replicas, count),
        _count(snapshot.leaders()[led], count),
        disk_used(snapshot),
    )
    after = _after(snapshot, plan, moves, before)
    sent, received = moves.sent(count), moves.received(count)
    return tuple(
        BrokerLoad(
            id=int(brokers.ids[b]),
            rack=brokers.rack_names[brokers.racks[b]],
            state=_state(goals, int(brokers.ids[b]), alive=bool(brokers.alive[b])),
            capacity=int(brokers.disk_bytes[b]),
            sent=int(sent[b]),
            received=int(received[b]),
            before=Load(*(int(values[b]) for values in before)),
            after=Load(*(int(values[b]) for values in after)),
        )
        for b in range(count)
    )


def _after(
    snapshot: Snapshot, plan: Plan, moves: Moves, before: tuple[Ints, Ints, Ints]
) -> tuple[Ints, Ints, Ints]:
    count = len(snapshot.brokers)
    first = snapshot.brokers.positions_of(
        plan.changes.after[plan.changes.after_offsets[:-1]], what="replicas of the plan"
    )
    replicas = before[0] - _count(moves.gone, count) + _count(moves.targets, count)
    # Where nobody leads the preferred leader will.
    leaders = _count(snapshot.leaders(), count) + _count(first, count)
    leaders -= _count(snapshot.leaders()[moves.partition], count)
    disk = before[2] + moves.received(count)
    np.subtract.at(disk, moves.gone, moves.gone_bytes)
    return replicas, leaders, disk


def _count(brokers: npt.NDArray[np.integer], count: int) -> Ints:
    return np.bincount(brokers, minlength=count).astype(np.int64)


def _state(goals: Goals, broker: int, *, alive: bool) -> str:
    if not alive:
        return DEAD
    if broker in goals.drained:
        return DRAINED
    return EXCLUDED if broker in goals.excluded else KEPT
