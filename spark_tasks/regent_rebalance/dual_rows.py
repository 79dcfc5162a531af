"""Partitions as the lower bound by prices sees them, and what each of them does at given prices.

See :mod:`regent_rebalance.prices` for the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regent_rebalance.case import Case, Floats
from regent_rebalance.jit import compiled, inlined
from regent_rebalance.ragged import Bools, Ints, ints


class Rows(NamedTuple):
    """What the bound looks at.

    Attributes:
        row: Which row of the case it is.
        weight: How many rows it stands for.
        free: Whether each replica may stay, whichever others do.
        home: Row and slot: the broker at the start, -1 for none and for one that may not keep it.
        rack: Row and slot: the rack of that broker.
        rack_limit: Replicas of each row that may stay in one rack.
        factor: Replicas that each row is to have.
        amount: Row and quantity.
        cost: What a new replica costs.
        toll: Row and slot: what that replica pays for staying, besides prices.
    """

    row: Ints
    weight: Floats
    free: Bools
    home: Ints
    rack: Ints
    rack_limit: Ints
    factor: Ints
    amount: Floats
    cost: Floats
    toll: Floats

    def some(self, places: Ints) -> Rows:
        """Some of the rows."""
        return Rows(
            self.row[places],
            self.weight[places],
            self.free[places],
            self.home[places],
            self.rack[places],
            self.rack_limit[places],
            self.factor[places],
            self.amount[places],
            self.cost[places],
            self.toll[places],
        )


def rows_of(case: Case, cost: Floats) -> Rows:
    """All rows of a case.

    Args:
        cost: What a new replica of each row costs.
    """
    home = case.home.astype(np.int64)
    home[(home >= 0) & ~case.keeps[home]] = -1
    limit = ints(np.full(len(home), home.shape[1]) if case.keep_crowds else case.rack_limit)
    rack, free = case.rack[home], np.empty(len(home), dtype=np.bool_)
    find_free(home, rack, limit, case.factor, free)
    return Rows(
        row=np.arange(len(home)),
        weight=np.ones(len(home)),
        free=free,
        home=home,
        rack=rack,
        rack_limit=limit,
        factor=case.factor,
        amount=case.replica_loads,
        cost=cost,
        toll=np.zeros(home.shape),
    )


@compiled
def find_free(home: Ints, rack: Ints, limit: Ints, factor: Ints, free: Bools) -> None:
    """Write for each row whether each replica may stay, whichever others do.

    Args:
        home, rack: Row and slot.
        limit, factor: Replicas of each row that may be in a rack, and in all.
    """
    for row in range(home.shape[0]):
        held, most = 0, 0
        for s in range(home.shape[1]):
            same = 0
            for other in range(home.shape[1]):
                same += int(home[row, other] >= 0 and rack[row, other] == rack[row, s])
            if home[row, s] >= 0:
                held, most = held + 1, max(most, same)
        free[row] = most <= limit[row] and held <= factor[row]


def scratch(rows: Rows) -> tuple[Ints, Floats]:
    """Room for the slots of a row. Compiled functions reserve no memory."""
    slots = rows.home.shape[1]
    return np.empty(slots, dtype=np.int64), np.empty(slots)


@inlined
def paid_in(rows: Rows, row: int, floor: Floats, group: int) -> float:
    """What a replica of a row that moves to a group pays there."""
    paid = 0.0
    for k in range(floor.shape[1]):
        paid += floor[group, k] * rows.amount[row, k]
    return paid


@inlined
def added_by(rows: Rows, row: int, slot: int, kinds: int, price: Floats, moved: float) -> float:
    """What it costs more than a move that the replica of a slot stays.

    Args:
        kinds, price, moved: As in :func:`stays`.
    """
    broker, more = rows.home[row, slot], rows.toll[row, slot] - moved
    for k in range(kinds):
        more += price[broker, k] * rows.amount[row, k]
    return float(more)


@inlined
def stays(
    rows: Rows,
    row: int,
    kinds: int,
    price: Floats,
    moved: float,
    chosen: Ints,
    saving: Floats,
) -> int:
    """Which replicas of a row may stay together at the least cost, the best first.

    Writes their slots and what it costs more than a move that each stays (mostly less than 0).

    Args:
        kinds: How many quantities there are.
        price: Broker and quantity.
        moved: What a move costs, and what is paid there.
    """
    count, free = 0, rows.free[row]
    for s in range(rows.home.shape[1]):
        if rows.home[row, s] < 0:
            continue
        more, i = added_by(rows, row, s, kinds, price, moved), count
        while i > 0 and not free and saving[i - 1] > more:
            saving[i], chosen[i] = saving[i - 1], chosen[i - 1]
            i -= 1
        saving[i], chosen[i] = more, s
        count += 1
    if free:
        return count
    kept = 0
    for i in range(count):
        used = 0
        for j in range(kept):
            used += int(rows.rack[row, chosen[j]] == rows.rack[row, chosen[i]])
        if kept < rows.factor[row] and used < rows.rack_limit[row]:
            chosen[kept], saving[kept] = chosen[i], saving[i]
            kept += 1
    return kept
