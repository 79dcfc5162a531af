"""What replicas pay because their broker has more of their topic than its limit: part of the bound.

Where a broker has n replicas of a topic, and m may stay, all but m leave, whatever they would
rather do. So each pays a toll for staying, and the broker gets back m of them (Lagrangian
relaxation, as all of :mod:`regent_rebalance.prices`). The best toll is what the last one that must
leave loses by leaving.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regent_rebalance.case import Case, Floats
from regent_rebalance.dual_rows import Rows
from regent_rebalance.ragged import Ints

_GRAIN = 2.0**-20


class Tolls(NamedTuple):
    """Tolls of the replicas of some rows.

    Attributes:
        each: Row and slot.
        back: What brokers get back.
    """

    each: Floats
    back: Floats


def find_tolls(case: Case, rows: Rows, group: Ints, floor: Floats, extra: Floats) -> Tolls:
    """The best tolls at some prices, where replicas choose each on its own.

    Args:
        rows: All rows of the case.
        group, floor, extra: As those of :class:`regent_rebalance.prices.Prices`.
    """
    each = np.zeros(rows.home.shape)
    if not case.by_topic:
        return Tolls(each, np.zeros(0))
    brokers = len(case.rack)
    pair = np.where(rows.home < 0, -1, case.topic[:, None] * brokers + rows.home)
    count = np.bincount(pair[pair >= 0], minlength=len(case.topic_most) * brokers)
    most = np.repeat(np.maximum(0, case.topic_most), brokers)
    row, slot = np.nonzero((count > most)[pair] & (pair >= 0))
    loss = _losses(rows, row, slot, group, floor, extra)
    of = pair[row, slot]
    order = np.lexsort((loss, of))
    ordered = of[order]
    place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    last = order[place == (count - most)[ordered] - 1]
    toll = np.zeros(len(count))
    toll[of[last]] = np.maximum(0.0, np.floor(loss[last] / _GRAIN) * _GRAIN)
    each[row, slot] = toll[of]
    return Tolls(each, toll[of[last]] * most[of[last]])


def _losses(rows: Rows, row: Ints, slot: Ints, group: Ints, floor: Floats, extra: Floats) -> Floats:
    """What it costs more that replicas move than that they stay.

    One that shares its rack lets another one stay there instead.
    """
    amount, target = rows.amount[row], np.full(len(row), np.inf)
    for asked in floor:
        target = np.minimum(target, (amount * asked).sum(axis=1))
    moved = rows.cost[row] + target

    def loss(s: Ints) -> Floats:
        broker = rows.home[row, s]
        stay = (amount * (floor[group[broker]] + extra[broker])).sum(axis=1)
        return np.asarray(moved - stay)

    instead = np.zeros(len(row))
    for s in range(rows.home.shape[1]):
        other = np.full(len(row), s)
        rival = (other != slot) & (rows.home[row, s] >= 0) & (rows.rack_limit[row] == 1)
        rival &= rows.rack[row, s] == rows.rack[row, slot]
        instead = np.where(rival, np.maximum(instead, loss(other)), instead)
    return loss(slot) - instead
