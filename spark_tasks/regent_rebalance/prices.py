"""A lower bound on what weighted plans cost, by prices of brokers; the search is guided by them.

Brokers are in groups: those that lack, and have too much of, the same quantities. A unit of
quantity k on broker b of group g costs ``floor[g, k] + extra[b, k]``, extra being at least 0. A
replica that stays pays that of its broker; one that moves pays at least the floor of the group
where it is cheapest, and its own cost. So each partition chooses on its own how many of its
replicas stay, within racks' limits; each broker pays for its limits. (With one floor for all, a
replica would seem to relieve at once a broker that lacks replicas and one that lacks bytes.) Every
such step allows more than plans may do: whatever the prices are, no plan costs less (Lagrangian
relaxation). What leaders alone bring is left out, as leaders change freely.

Good prices are found on a sample of partitions: ``min(0, x)`` is made smooth, and a gradient
climbed in steps that shrink (Adam). That is done twice: the prices of a small sample tell which
replicas stay in any case, and a larger sample has only the others. Only additions, products and
square roots are used: every machine finds the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regent_rebalance.case import Case, Floats
from regent_rebalance.jit import compiled, inlined
from regent_rebalance.ragged import Bools, Ints, ints

_ROUGH_SAMPLE, _SAMPLE = 8_000, 60_000
"""Rows that prices are found on, at most: of all, and then of those that may move."""

_EVEN = 0.5
"""How often the smallest partitions are drawn, by how often those of the mean size are."""

_CLEARLY_STAYS = 0.1
"""A replica whose move saves less than this share of its cost is left out of the second climb."""


class _Climb(NamedTuple):
    """How prices are found.

    Attributes:
        steps: How many.
        smooth: How smooth the bound is at first, and by what it is divided in the end, as a power
            of e.
        pace: The same for the lengths of steps.
    """

    steps: int
    smooth: tuple[float, float]
    pace: tuple[float, float]


_ROUGH = _Climb(300, (0.01, 1.5), (0.7, 4.5))
_FINE = _Climb(800, (0.003, 1.5), (0.05, 4.0))

_GRAIN = 2.0**-20
_SAFE = 1e-9
"""Far more than rounding adds to a sum of so many parts."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a unit, in the cost of moves.

    Attributes:
        group: Of each broker.
        floor: For each group and replica quantity.
        extra: For each broker and replica quantity, at least 0.
    """

    group: Ints
    floor: Floats
    extra: Floats

    def of_brokers(self) -> Floats:
        """For each broker and replica quantity the price, 0 being the least of any broker."""
        price = self.floor[self.group] + self.extra
        return np.asarray(price - price.min(axis=0))

    def saved(self, case: Case) -> Floats:
        """For each row and slot what a move saves at most, its cost not taken off."""
        stays_for = self.floor[self.group] + self.extra
        target = np.full(len(case.factor), np.inf)
        for floor in self.floor:
            target = np.minimum(target, (case.replica_loads * floor).sum(axis=1))
        held = np.where(case.home < 0, 0, case.home)
        paid = (stays_for[held] * case.replica_loads[:, None, :]).sum(axis=2)
        return np.asarray(paid - target[:, None])


def find_prices(case: Case, cost: Floats, shuffle: Ints) -> Prices:
    """Prices whose bound is good.

    Args:
        cost: What a new replica of each row costs, 1 on average.
        shuffle: For each row its place in an order that has nothing to do with loads.
    """
    kinds = case.replica_loads.shape[1]
    group = _groups(case, _start_load(case))
    groups = int(group.max(initial=0)) + 1
    prices = Prices(group, np.zeros((groups, kinds)), np.zeros((len(case.rack), kinds)))
    if len(case.factor) == 0 or kinds == 0:
        return prices
    everything = _rows_of(case, cost, np.arange(len(case.factor)))
    rough = _climbed(case, _drawn(everything, shuffle, _ROUGH_SAMPLE), prices, _ROUGH)
    undecided = _undecided(case, everything, rough)
    return _climbed(case, _drawn(undecided, shuffle[undecided.row], _SAMPLE), rough, _FINE)


def _drawn(rows: Rows, shuffle: Ints, most: int) -> Rows:
    """About as many rows as there may be, each standing for as many as were left out.

    Large ones say more of prices: they are drawn more often, and stand for fewer.
    """
    count = len(rows.row)
    if count <= most:
        return rows
    # Sums of integers: the same in any order.
    mean = np.maximum(1, rows.amount.astype(np.int64).sum(axis=0)) / count
    size = (rows.amount / mean).sum(axis=1) / rows.amount.shape[1]
    chance = np.minimum(1.0, (_EVEN + size * (1 - _EVEN)) * (most / count))
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(shuffle, kind="stable")] = np.arange(count)
    chosen = np.flatnonzero(place + 0.5 < chance * count)
    return rows.some(chosen)._replace(weight=rows.weight[chosen] / chance[chosen])


def _undecided(case: Case, rows: Rows, prices: Prices) -> Rows:
    """Rows that may gain by a move, without the replicas that clearly stay.

    Where racks and the number of replicas leave no choice each replica is decided for by itself.
    """
    saved = prices.saved(case)
    may_move = (rows.home >= 0) & (saved > _CLEARLY_STAYS * rows.cost[:, None])
    stays = rows.free[:, None] & (rows.home >= 0) & ~may_move
    left = np.flatnonzero(~rows.free | may_move.any(axis=1) | (rows.factor > stays.sum(axis=1)))
    home = np.where(stays, -1, rows.home)
    return rows.some(left)._replace(home=home[left], factor=(rows.factor - stays.sum(axis=1))[left])


def _climbed(case: Case, sample: Rows, begin: Prices, way: _Climb) -> Prices:
    """Prices after all steps."""
    kinds = case.replica_loads.shape[1]
    load = _start_load(case)
    # Sums of integers: the same in any order. Prices are those of a mean replica until the end.
    unit = np.maximum(1.0, case.replica_loads.astype(np.int64).sum(axis=0) / len(case.factor))
    sample = sample._replace(amount=sample.amount / unit)
    upper = np.minimum(case.most[:, :kinds], case.capacity[:, :kinds])
    limits = np.where(case.keeps[:, None], (load, case.least[:, :kinds], upper), 0.0) / unit
    group, floor, extra = begin.group, begin.floor * unit, begin.extra * unit
    # Adam's two averages, for the floors and for what brokers pay beyond them.
    first = np.zeros((len(floor) + len(case.rack), kinds))
    second, gradient = np.zeros_like(first), np.zeros_like(first)
    fade_first, fade_second = 1.0, 1.0
    scratch = _scratch(sample)
    smooth, pace = way.smooth[0], way.pace[0]
    for _ in range(way.steps):
        climb(sample, limits, group, floor, extra, smooth, gradient, *scratch)
        # A floor is part of what all brokers of its group pay.
        np.add.at(gradient[: len(floor)], group, gradient[len(floor) :])
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient * gradient
        fade_first, fade_second = 0.9 * fade_first, 0.99 * fade_second
        move = pace * first / (1 - fade_first) / (np.sqrt(second / (1 - fade_second)) + 1e-12)
        floor = floor + move[: len(floor)]
        extra = np.where(case.keeps[:, None], np.maximum(0.0, extra + move[len(floor) :]), 0.0)
        smooth *= 1 - way.smooth[1] / way.steps
        pace *= 1 - way.pace[1] / way.steps
    return Prices(
        group, np.round(floor / _GRAIN) * _GRAIN / unit, np.round(extra / _GRAIN) * _GRAIN / unit
    )


def _groups(case: Case, load: Floats) -> Ints:
    """A number for each broker, the same for those that lack, and have too much of, the same.

    Args:
        load: At the start.
    """
    kinds = load.shape[1]
    lacks = case.keeps[:, None] & (load < case.least[:, :kinds])
    above = load > np.minimum(case.most[:, :kinds], case.capacity[:, :kinds])
    codes = ((lacks + 2 * (above & case.keeps[:, None])) * 3 ** np.arange(kinds)).sum(axis=1)
    return ints(np.unique(codes, return_inverse=True)[1])


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
        )


def _rows_of(case: Case, cost: Floats, rows: Ints) -> Rows:
    home = case.home[rows].astype(np.int64)
    home[(home >= 0) & ~case.keeps[home]] = -1
    limit = np.full(len(rows), home.shape[1]) if case.keep_crowds else case.rack_limit[rows]
    rack, factor = case.rack[home], case.factor[rows]
    racks = np.where(home < 0, -1 - np.arange(home.shape[1]), rack)
    most = (racks[:, :, None] == racks[:, None, :]).sum(axis=2).max(axis=1, initial=0)
    return Rows(
        row=ints(rows),
        weight=np.ones(len(rows)),
        free=(most <= limit) & ((home >= 0).sum(axis=1) <= factor),
        home=home,
        rack=rack,
        rack_limit=ints(limit),
        factor=factor,
        amount=case.replica_loads[rows],
        cost=cost[rows],
    )


def _scratch(rows: Rows) -> tuple[Ints, Floats]:
    """Room for the slots of a row. Compiled functions reserve no memory."""
    slots = rows.home.shape[1]
    return np.empty(slots, dtype=np.int64), np.empty(slots)


def _start_load(case: Case) -> Floats:
    """What movable rows bring to each broker at the start."""
    load = np.zeros((len(case.rack), case.replica_loads.shape[1]))
    for slot in range(case.home.shape[1]):
        held = case.home[:, slot] >= 0
        np.add.at(load, case.home[held, slot], case.replica_loads[held])
    return load


@inlined
def cheapest_group(rows: Rows, row: int, floor: Floats) -> tuple[int, float]:
    """The group where a replica of a row that moves pays least, and what it pays."""
    best, least = 0, np.inf
    for g in range(floor.shape[0]):
        paid = 0.0
        for k in range(floor.shape[1]):
            paid += floor[g, k] * rows.amount[row, k]
        if paid < least:
            best, least = g, paid
    return best, least


@inlined
def stays(
    rows: Rows,
    row: int,
    group: Ints,
    floor: Floats,
    extra: Floats,
    moved: float,
    chosen: Ints,
    saving: Floats,
) -> int:
    """Which replicas of a row may stay together at the least cost, the best first.

    Writes their slots and what it costs more than a move that each stays (mostly less than 0).

    Args:
        moved: What a move costs, and what is paid there.
    """
    count = 0
    for s in range(rows.home.shape[1]):
        b = rows.home[row, s]
        if b < 0:
            continue
        more = -moved
        for k in range(extra.shape[1]):
            more += (floor[group[b], k] + extra[b, k]) * rows.amount[row, k]
        i = count
        while i > 0 and saving[i - 1] > more and not rows.free[row]:
            saving[i], chosen[i] = saving[i - 1], chosen[i - 1]
            i -= 1
        saving[i], chosen[i] = more, s
        count += 1
    if rows.free[row]:
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


@compiled
def climb(
    rows: Rows,
    limits: Floats,
    group: Ints,
    floor: Floats,
    extra: Floats,
    smooth: float,
    gradient: Floats,
    chosen: Ints,
    saving: Floats,
) -> None:
    """The gradient of the smooth bound.

    A sample's rows tell what would change; what is there at the start is known of all rows.

    Args:
        limits: Load at the start, least and most of each broker and quantity.
        gradient: Written: a row for each group, of what moves there alone, then one for each
            broker.
        chosen, saving: Scratch, as many numbers as there are slots.
    """
    brokers, kinds = extra.shape
    groups, slots = floor.shape[0], rows.home.shape[1]
    gradient[:] = 0.0
    for b in range(brokers):
        for k in range(kinds):
            price = floor[group[b], k] + extra[b, k]
            middle = (limits[1, b, k] + limits[2, b, k]) / 2
            half = (limits[2, b, k] - limits[1, b, k]) / 2
            # |price| made smooth, so that a price near 0 belongs to both limits.
            size = np.sqrt(price * price + 1e-4 * smooth * smooth)
            slope = limits[0, b, k] - middle - half * price / size
            gradient[groups + b, k] += slope
    for row in range(rows.home.shape[0]):
        target, paid = cheapest_group(rows, row, floor)
        moved, share = rows.cost[row] + paid, rows.weight[row]
        count = stays(rows, row, group, floor, extra, moved, chosen, saving)
        wanted = float(rows.factor[row])
        for i in range(count):
            stay = 0.5 - 0.5 * saving[i] / np.sqrt(saving[i] * saving[i] + smooth * smooth)
            wanted -= stay
            b = rows.home[row, chosen[i]]
            for k in range(kinds):
                gradient[groups + b, k] += share * stay * rows.amount[row, k]
        for k in range(kinds):
            gradient[target, k] += share * wanted * rows.amount[row, k]
        for s in range(slots):
            b = rows.home[row, s]
            if b >= 0:
                for k in range(kinds):
                    gradient[groups + b, k] -= share * rows.amount[row, k]


def dual_cost(case: Case, cost: Floats, prices: Prices) -> float:
    """No plan within the limits of the case costs less; less what rounding may have added."""
    kinds = prices.floor.shape[1]
    if len(case.factor) == 0 or kinds == 0:
        return 0.0
    price = np.where(case.keeps[:, None], prices.floor[prices.group] + prices.extra, 0.0)
    upper = np.minimum(case.most[:, :kinds], case.capacity[:, :kinds])
    brokers = -price * np.where(price < 0, case.least[:, :kinds], upper)
    rows = _rows_of(case, cost, np.arange(len(case.factor)))
    value, size = cheapest(rows, prices.group, prices.floor, prices.extra, *_scratch(rows))
    return float(math.fsum(brokers.flat) + value - _SAFE * (np.abs(brokers).sum() + size))


@compiled
def cheapest(
    rows: Rows, group: Ints, floor: Floats, extra: Floats, chosen: Ints, saving: Floats
) -> tuple[float, float]:
    """What all rows pay at least, and the sum of the sizes of what was added up."""
    value, size = 0.0, 0.0
    for row in range(rows.home.shape[0]):
        moved = rows.cost[row] + cheapest_group(rows, row, floor)[1]
        worth = rows.factor[row] * moved
        size += abs(worth)
        for i in range(stays(rows, row, group, floor, extra, moved, chosen, saving)):
            worth += min(0.0, saving[i])
            size -= min(0.0, saving[i])
        value += worth
    return value, size
