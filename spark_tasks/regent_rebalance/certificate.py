"""The dual bound: no plan costs less, whatever the prices. With the right prices it is exact.

Let every unit on broker b cost a price of b. Then each partition chooses the cheapest brokers that
racks allow, on its own, and each broker the load that is cheapest for it; nobody does better when
they have to agree. (Lagrangian relaxation of "what partitions place is what brokers have".) The
sum is of integers, hence exact.
"""

from __future__ import annotations

import numpy as np

from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Bools, Ints, rectangle

_FAR = np.int64(2**40)
_CELLS = 1 << 20  # of the largest table


def dual_bound(problem: Problem, prices: Ints) -> int:
    """A lower bound of moves and penalties together."""
    width = int(np.diff(problem.offsets).max(initial=0))
    chunk, limits = max(1, _CELLS // (width + problem.racks)), problem.rack_limits()
    placed = sum(
        _cheapest(problem, prices, limits, np.arange(begin, min(begin + chunk, problem.partitions)))
        for begin in range(0, problem.partitions, chunk)
    )
    return placed + problem.costs.least_with_prices(
        np.where(problem.keeps, prices, 0), int(problem.factor.sum())
    )


def _cheapest(problem: Problem, prices: Ints, limits: Ints, partitions: Ints) -> int:
    """The least that partitions pay, each with its racks.

    Args:
        limits: How many replicas of each partition one rack may have.
    """
    width = int(np.diff(problem.offsets)[partitions].max(initial=0))
    present = rectangle(problem.offsets, problem.replicas, partitions, fill=-1)
    keeps = (present >= 0) & problem.keeps[present]
    kept = np.zeros((len(partitions), problem.racks), dtype=np.int64)
    for column in range(width):
        rows = np.flatnonzero(keeps[:, column])
        kept[rows, problem.rack[present[rows, column]]] += 1
    allowed = np.broadcast_to(limits[partitions][:, None], kept.shape)
    if not problem.repairs_racks:
        allowed = np.maximum(allowed, kept)
    factor = problem.factor[partitions]
    if (allowed == 1).all():
        return _one_in_a_rack(problem, prices, present, keeps, factor)
    costs = np.full((len(partitions), width + problem.racks), _FAR)
    costs[:, :width] = np.where(keeps, prices[present], _FAR)
    costs[:, width:] = _new_in_rack(problem, prices)
    racks = np.empty(costs.shape, dtype=np.int64)
    racks[:, :width] = problem.rack[present]
    racks[:, width:] = np.arange(problem.racks)
    now = (kept > 0).sum(axis=1)
    beyond = np.where(kept.sum(axis=1) <= factor, factor - now, factor)
    return _greedy(costs, racks, allowed.copy(), factor, beyond, width)


def _one_in_a_rack(
    problem: Problem, prices: Ints, present: Ints, keeps: Bools, wanted: Ints
) -> int:
    """The same where no rack may have two: each takes the racks that are cheapest for it."""
    least = np.repeat(_new_in_rack(problem, prices)[None, :], len(present), axis=0)
    for column in range(present.shape[1]):
        rows = np.flatnonzero(keeps[:, column])
        broker = present[rows, column]
        at = rows, problem.rack[broker]
        least[at] = np.minimum(least[at], prices[broker])
    least.sort(axis=1)
    taken = (np.arange(problem.racks) < wanted[:, None]) & (least < _FAR)
    return int(least[taken].sum())


def _new_in_rack(problem: Problem, prices: Ints) -> Ints:
    """Cost of the cheapest new replica in each rack, and at least of any further one."""
    cheapest = np.full(problem.racks, _FAR)
    np.minimum.at(cheapest, problem.rack[problem.takes], prices[problem.takes] + 1)
    return cheapest


def _greedy(costs: Ints, racks: Ints, room: Ints, wanted: Ints, beyond: Ints, width: int) -> int:
    """What the cheapest replicas cost. It is exact: the sets of brokers within rack limits, of
    which so many at most are not the first in their rack, are the independent sets of a matroid.
    """
    order = np.argsort(costs, axis=1, kind="stable")
    rows = np.arange(len(costs))
    left, total = wanted.copy(), np.zeros(len(costs), dtype=np.int64)
    beyond, is_empty = beyond.copy(), np.ones(room.shape, dtype=np.bool_)
    for column in order.T:
        if not left.any():
            break
        rack = racks[rows, column]
        # A present replica is one; new ones in a rack are as many as there is room for.
        units = np.where(column < width, 1, wanted)
        units = np.minimum(np.minimum(units, left), room[rows, rack])
        first = is_empty[rows, rack].astype(np.int64)
        units = np.minimum(units, first + beyond)
        cost = costs[rows, column]
        units[cost >= _FAR] = 0
        beyond -= np.maximum(0, units - first)
        is_empty[rows, rack] &= units == 0
        total += units * cost
        left -= units
        room[rows, rack] -= units
    return int(total.sum())
