"""A lower bound on what weighted plans cost, by prices of brokers; the search is guided by them.

Brokers are in groups: those that lack, and have too much of, the same quantities. A unit of
quantity k on broker b of group g costs ``floor[g, k] + extra[b, k]``, extra being at least 0. A
replica that stays pays that of its broker; one that moves pays at least the floor of the group
where it is cheapest, and its own cost. So each partition chooses on its own how many of its
replicas stay, within racks' limits; each broker pays for its limits. (With one floor for all, a
replica would seem to relieve at once a broker that lacks replicas and one that lacks bytes.) Every
such step allows more than plans may do: whatever the prices are, no plan costs less (Lagrangian
relaxation). What leaders alone bring is left out, as leaders change freely. Where a broker has too
many of a topic, these pay a toll for staying (``tolls.py``).

Good prices are found on a sample of partitions: kinks are made smooth, and Newton's method climbs
what is left; then kinks are made sharper, and it climbs on. That is done twice: the prices of a
small sample tell which replicas stay in any case, and a larger sample has only the others. Only
sums, products, quotients and square roots are used: every machine finds the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regent_rebalance.case import Case, Floats
from regent_rebalance.dual_rows import Rows, paid_in, rows_of, scratch, stays
from regent_rebalance.jit import compiled
from regent_rebalance.kernel import count_replicas
from regent_rebalance.newton import Step, find_step
from regent_rebalance.ragged import Ints, ints, ranks
from regent_rebalance.smooth_bound import Slopes, Targets, slope_along, smooth_bound
from regent_rebalance.tolls import find_tolls

_EVEN = 0.5
"""How often the smallest partitions are drawn, by how often those of the mean size are."""

_CLEARLY_STAYS = 0.1
"""A replica whose move saves less than this share of its cost is left out of the second climb."""


class _Climb(NamedTuple):
    """How prices are found.

    Attributes:
        rows: On how many, at most.
        first, last: How smooth the bound is at first and in the end.
        most: How often it may be computed.
    """

    rows: int
    first: float
    last: float
    most: int


_ROUGH = (_Climb(2_000, 0.1, 0.01, 150), _Climb(8_000, 0.01, 1e-3, 100))
_FINE = _Climb(60_000, 1e-3, 5e-5, 120)
"""Of all rows, and of those that may move at the prices of the others."""

_SHARPER = 0.5
"""How smooth the bound is after a climb, by how smooth it was."""

_RISE = 1e-4
"""A climb ends with a step that raises the bound by less, by rows and by how smooth it is."""

_LONGEST = 0.5
"""No price changes by more in a step, in the cost of moving a mean replica."""

_DAMPED, _LEAST_DAMPED, _MOST_DAMPED = 0.1, 1e-3, 1e6
"""The damping of the first step, the least and the most."""

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
        """For each row and slot what a move saves at most, its cost not taken off.

        Where a slot is empty a number that means nothing."""
        stays_for = self.floor[self.group] + self.extra
        target = np.full(len(case.factor), np.inf)
        for floor in self.floor:
            target = np.minimum(target, (case.replica_loads * floor).sum(axis=1))
        saved = np.empty(case.home.shape)
        find_saved(case, stays_for, target, saved)
        return saved


def find_prices(case: Case, cost: Floats, shuffle: Ints) -> Prices:
    """Prices whose bound is good.

    Args:
        cost: What a new replica of each row costs, 1 on average.
        shuffle: For each row its place in an order that has nothing to do with loads, from 0 on.
    """
    kinds = case.replica_loads.shape[1]
    load = _start_load(case)
    group = _groups(case, load)
    groups = int(group.max(initial=0)) + 1
    prices = Prices(group, np.zeros((groups, kinds)), np.zeros((len(case.rack), kinds)))
    if len(case.factor) == 0 or kinds == 0:
        return prices
    everything = rows_of(case, cost)
    for way in _ROUGH:
        prices = _climbed(case, load, _drawn(everything, shuffle, way.rows), prices, way)
    tolls = find_tolls(case, everything, group, prices.floor, prices.extra)
    undecided = _undecided(case, everything._replace(toll=tolls.each), prices)
    sample = _drawn(undecided, ranks(shuffle[undecided.row]), _FINE.rows)
    return _climbed(case, load, sample, prices, _FINE)


def _drawn(rows: Rows, place: Ints, most: int) -> Rows:
    """About as many rows as there may be, each standing for as many as were left out.

    Large ones say more of prices: they are drawn more often, and stand for fewer.

    Args:
        place: Of each row in an order that has nothing to do with loads, from 0 on.
    """
    count = len(rows.row)
    if count <= most:
        return rows
    # Sums of integers: the same in any order.
    mean = np.maximum(1, rows.amount.astype(np.int64).sum(axis=0)) / count
    size = (rows.amount / mean).sum(axis=1) / rows.amount.shape[1]
    chance = np.minimum(1.0, (_EVEN + size * (1 - _EVEN)) * (most / count))
    chosen = np.flatnonzero(place + 0.5 < chance * count)
    return rows.some(chosen)._replace(weight=rows.weight[chosen] / chance[chosen])


def _undecided(case: Case, rows: Rows, prices: Prices) -> Rows:
    """Rows that may gain by a move, without the replicas that clearly stay.

    Where racks and the number of replicas leave no choice each replica is decided for by itself.
    """
    saved = prices.saved(case)
    may_move = (rows.home >= 0) & (saved + rows.toll > _CLEARLY_STAYS * rows.cost[:, None])
    stays = rows.free[:, None] & (rows.home >= 0) & ~may_move
    left = np.flatnonzero(~rows.free | may_move.any(axis=1) | (rows.factor > stays.sum(axis=1)))
    home = np.where(stays, -1, rows.home)
    return rows.some(left)._replace(home=home[left], factor=(rows.factor - stays.sum(axis=1))[left])


def _climbed(case: Case, load: Floats, sample: Rows, begin: Prices, way: _Climb) -> Prices:
    """Prices after all climbs, from the load at the start."""
    kinds = case.replica_loads.shape[1]
    # Sums of integers: the same in any order. Prices are those of a mean replica until the end.
    unit = np.maximum(1.0, case.replica_loads.astype(np.int64).sum(axis=0) / len(case.factor))
    sample = sample._replace(amount=sample.amount / unit)
    upper = np.minimum(case.most[:, :kinds], case.capacity[:, :kinds])
    limits = np.where(case.keeps[:, None], (load, case.least[:, :kinds], upper), 0.0) / unit
    ascent = _Ascent(case, sample, limits, begin.group)
    floor, extra = ascent.top(begin.floor * unit, begin.extra * unit, way)
    return Prices(
        begin.group,
        np.round(floor / _GRAIN) * _GRAIN / unit,
        np.round(extra / _GRAIN) * _GRAIN / unit,
    )


class _Ascent:
    """Climbs of the smooth bound.

    Args:
        limits: Load at the start, least and most of each broker and quantity.
        group: Of each broker.
    """

    def __init__(self, case: Case, sample: Rows, limits: Floats, group: Ints) -> None:
        shape = len(case.rack), int(group.max()) + 1, limits.shape[2]
        self._sample, self._limits, self._group = sample, limits, group
        self._keeps = np.repeat(case.keeps[:, None], shape[2], axis=1)
        self._rows = len(case.factor)
        self._here, self._there = Slopes.empty(*shape), Slopes.empty(*shape)
        self._step, self._targets = Step.empty(*shape), Targets.empty(shape[1])
        self._scratch = scratch(sample)
        self._damping, self._left = _DAMPED, 0

    def top(self, floor: Floats, extra: Floats, way: _Climb) -> tuple[Floats, Floats]:
        """Floors and extras where the bound is nearly the best of the sample."""
        smooth, self._left = way.first, way.most
        before: tuple[tuple[Floats, Floats], float] | None = None
        while True:
            top = self._climb(floor, extra, smooth)
            if smooth <= way.last or self._left <= 0:
                return top
            sharper = max(way.last, smooth * _SHARPER)
            floor, extra = top
            if before is not None:
                # Tops lie nearly on a line, as far from the last one as the bound is smooth.
                (old_floor, old_extra), old = before
                share = (smooth - sharper) / (old - smooth)
                floor = floor + share * (floor - old_floor)
                extra = self._legal(extra + share * (extra - old_extra))
            before, smooth = (top, smooth), sharper
            self._damping = min(self._damping, 1.0)

    def _climb(self, floor: Floats, extra: Floats, smooth: float) -> tuple[Floats, Floats]:
        """Where the bound that is so smooth hardly rises."""
        value = self._value(floor, extra, smooth, self._here)
        while self._left > 0 and self._damping < _MOST_DAMPED:
            fixed = ~self._keeps | ((extra <= 0.0) & (self._here.of_broker <= 0.0))
            step = self._step
            find_step(self._group, self._here, fixed, self._damping, step)
            longest = max(float(np.abs(step.floor).max()), float(np.abs(step.extra).max()))
            if not math.isfinite(longest):  # the system has next to no solution
                self._damping = 4.0 * max(self._damping, _LEAST_DAMPED)
                continue
            share = min(1.0, _LONGEST / longest) if longest > 0.0 else 1.0
            new_floor, new_extra = (
                floor + share * step.floor,
                self._legal(extra + share * step.extra),
            )
            hoped = slope_along(self._group, self._here, new_floor - floor, new_extra - extra)
            found = self._value(new_floor, new_extra, smooth, self._there)
            rise = found - value
            if rise <= 1e-4 * hoped:
                self._damping = 4.0 * max(self._damping, _LEAST_DAMPED)
                continue
            # A parabola has risen by half of what its first slope lets hope.
            if rise > 0.4 * hoped:
                self._damping = max(self._damping / 5, _LEAST_DAMPED)
            else:
                self._damping *= 1.5
            floor, extra, value = new_floor, new_extra, found
            self._here, self._there = self._there, self._here
            if rise <= _RISE * smooth * self._rows:
                break
        return floor, extra

    def _value(self, floor: Floats, extra: Floats, smooth: float, slopes: Slopes) -> float:
        self._left -= 1
        given = self._sample, self._limits, self._group, floor, extra, smooth
        return smooth_bound(*given, slopes, self._targets, *self._scratch)

    def _legal(self, extra: Floats) -> Floats:
        return np.where(self._keeps, np.maximum(0.0, extra), 0.0)


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


def _start_load(case: Case) -> Floats:
    """What movable rows bring to each broker at the start."""
    load = np.zeros((len(case.rack), case.replica_loads.shape[1]))
    count_replicas(case, load)
    return load


def dual_cost(case: Case, cost: Floats, prices: Prices) -> float:
    """No plan within the limits of the case costs less; less what rounding may have added."""
    kinds = prices.floor.shape[1]
    if len(case.factor) == 0 or kinds == 0:
        return 0.0
    price = np.where(case.keeps[:, None], prices.floor[prices.group] + prices.extra, 0.0)
    upper = np.minimum(case.most[:, :kinds], case.capacity[:, :kinds])
    brokers = -price * np.where(price < 0, case.least[:, :kinds], upper)
    rows = rows_of(case, cost)
    tolls = find_tolls(case, rows, prices.group, prices.floor, prices.extra)
    rows = rows._replace(toll=tolls.each)
    staying = prices.floor[prices.group] + prices.extra
    value, size = cheapest(rows, prices.floor, staying, *scratch(rows))
    paid = np.append(brokers, -tolls.back)
    return float(math.fsum(paid) + value - _SAFE * (np.abs(paid).sum() + size))


@compiled
def find_saved(case: Case, price: Floats, target: Floats, saved: Floats) -> None:
    """Write for each row and slot what a replica pays at prices of brokers more than elsewhere.

    Args:
        target: What each row pays where it is cheapest.
    """
    for row in range(case.home.shape[0]):
        for slot in range(case.home.shape[1]):
            broker, paid = max(0, case.home[row, slot]), 0.0
            for k in range(price.shape[1]):
                paid += price[broker, k] * case.replica_loads[row, k]
            saved[row, slot] = paid - target[row]


@compiled
def cheapest(
    rows: Rows, floor: Floats, price: Floats, chosen: Ints, saving: Floats
) -> tuple[float, float]:
    """What all rows pay at least, and the sum of the sizes of what was added up.

    Args:
        price: Broker and quantity.
    """
    value, size = 0.0, 0.0
    for row in range(rows.home.shape[0]):
        paid = np.inf
        for g in range(floor.shape[0]):
            paid = min(paid, paid_in(rows, row, floor, g))
        moved = rows.cost[row] + paid
        worth = rows.factor[row] * moved
        size += abs(worth)
        for i in range(stays(rows, row, price.shape[1], price, moved, chosen, saving)):
            worth += min(0.0, saving[i])
            size -= min(0.0, saving[i])
        value += worth
    return value, size
