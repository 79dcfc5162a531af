"""The lower bound by prices made smooth, with its slopes and curvatures. Compiled.

The bound is a concave function of prices, with a kink wherever a choice changes: a replica stays or
moves, a price changes its sign, another group of brokers is the cheapest. A kink ``min(0, x)`` is
replaced by ``(x - sqrt(x**2 + smooth**2)) / 2``, which is below it by at most half of ``smooth``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regent_rebalance.case import Floats
from regent_rebalance.dual_rows import Rows, added_by, stays
from regent_rebalance.jit import compiled, inlined
from regent_rebalance.ragged import Ints

_SHARP = 0.1
"""How smooth limits are, by how smooth choices are: more replicas hang on a limit."""

_LIGHT = 0.25
"""Choices of heavy rows are smoother than those of light ones: added to how heavy a row is."""

_FAR, _DEARER = 10.0, 5.0
"""So many times ``smooth`` from a kink nothing is smoothed; the second is for groups."""


class Slopes(NamedTuple):
    """Derivatives of the smooth bound. Curvatures are those of its negative, so at least 0.

    Attributes:
        of_broker: Broker and quantity: by the price on the broker.
        of_group: Group and quantity: by the floor that replicas pay which move there.
        within: Broker and two quantities: the curvature by prices on the broker.
        mixed: Broker, group and a quantity of each: by a price on the broker and a floor.
        between: Two groups and a quantity of each: by two floors.
    """

    of_broker: Floats
    of_group: Floats
    within: Floats
    mixed: Floats
    between: Floats

    @classmethod
    def empty(cls, brokers: int, groups: int, kinds: int) -> Slopes:
        """Room for them."""
        return cls(
            np.zeros((brokers, kinds)),
            np.zeros((groups, kinds)),
            np.zeros((brokers, kinds, kinds)),
            np.zeros((brokers, groups, kinds, kinds)),
            np.zeros((groups, groups, kinds, kinds)),
        )


class Targets(NamedTuple):
    """The groups that replicas of a row may move to: those that ask hardly more than the cheapest.

    Attributes:
        group: Their numbers.
        share: Of the replicas that move, how much of them goes to each.
        bend: For two of them the curvature of what is paid, by what both ask.
        lead: Scratch: a number for each.
        asked: What each group asks; by its own number.
    """

    group: Ints
    share: Floats
    bend: Floats
    lead: Floats
    asked: Floats

    @classmethod
    def empty(cls, groups: int) -> Targets:
        """Room for them."""
        return cls(
            np.zeros(groups, dtype=np.int64),
            np.zeros(groups),
            np.zeros((groups, groups)),
            np.zeros(groups),
            np.zeros(groups),
        )


@inlined
def find_targets(
    rows: Rows, row: int, kinds: int, floor: Floats, smooth: float, targets: Targets
) -> tuple[int, float]:
    """How many targets there are, which are written, and what is paid on them.

    Args:
        kinds: How many quantities there are.
        floor: Quantity and group.
    """
    asked, least = targets.asked, np.inf
    for g in range(asked.shape[0]):
        asked[g] = 0.0
    for k in range(kinds):
        amount = rows.amount[row, k]
        for g in range(asked.shape[0]):
            asked[g] += floor[k, g] * amount
    for g in range(asked.shape[0]):
        least = min(least, asked[g])
    count, paid, most = 0, np.inf, least + _DEARER * smooth
    for g in range(asked.shape[0]):
        if asked[g] > most:
            continue
        targets.group[count] = g
        if count == 0:
            paid, targets.share[0], targets.bend[0, 0] = asked[g], 1.0, 0.0
        else:
            paid = add_target(targets, count, paid, asked[g], smooth)
        count += 1
    return count, paid


@inlined
def add_target(targets: Targets, count: int, paid: float, asked: float, smooth: float) -> float:
    """The smooth minimum of what was paid so far and what one more target asks."""
    apart = paid - asked
    root = np.sqrt(apart * apart + smooth * smooth)
    passed = 0.5 + 0.5 * apart / root
    bend = 0.5 * smooth * smooth / (root * root * root)
    for i in range(count):
        targets.lead[i] = targets.share[i]
        targets.share[i] *= 1.0 - passed
    targets.lead[count], targets.share[count] = -1.0, passed
    for i in range(count + 1):
        for j in range(count + 1):
            before = targets.bend[i, j] * (1.0 - passed) if i < count and j < count else 0.0
            targets.bend[i, j] = before + bend * targets.lead[i] * targets.lead[j]
    return float((paid + asked - root) / 2)


def smooth_bound(
    rows: Rows,
    limits: Floats,
    group: Ints,
    floor: Floats,
    extra: Floats,
    smooth: float,
    slopes: Slopes,
    targets: Targets,
    chosen: Ints,
    saving: Floats,
) -> float:
    """The smooth bound at some prices. Its derivatives are written.

    A sample's rows tell what would change; what is there at the start is known of all rows.

    Args:
        limits: Load at the start, least and most of each broker and quantity.
        group, floor, extra: As those of :class:`regent_rebalance.prices.Prices`.
        targets, chosen, saving: Scratch; as many numbers as there are slots.
    """
    price, each = floor[group] + extra, (0,) * extra.shape[1]
    asked = np.ascontiguousarray(floor.T)
    return add_up(rows, limits, asked, price, smooth, slopes, each, targets, chosen, saving)


@compiled
def add_up(
    rows: Rows,
    limits: Floats,
    floor: Floats,
    price: Floats,
    sharp: float,
    slopes: Slopes,
    each: tuple[int, ...],
    targets: Targets,
    chosen: Ints,
    saving: Floats,
) -> float:
    """The same with prices of brokers.

    Args:
        floor: Quantity and group.
        price: Broker and quantity.
        each: As many numbers as there are quantities. It is compiled for so many, as most of the
            time is spent in loops over them.
    """
    of_broker, of_group, within, mixed, between = slopes
    of_broker[:], of_group[:] = 0.0, 0.0
    within[:], mixed[:], between[:] = 0.0, 0.0, 0.0
    value, kinds = 0.0, len(each)
    value += add_brokers(limits, kinds, price, _SHARP * sharp, slopes)
    for row in range(rows.home.shape[0]):
        share, smooth = rows.weight[row], 0.0
        for k in range(kinds):
            smooth += sharp * (_LIGHT + rows.amount[row, k]) / kinds
        count, paid = find_targets(rows, row, kinds, floor, smooth, targets)
        moved, wanted = rows.cost[row] + paid, float(rows.factor[row])
        value += share * wanted * moved
        staying = stays(rows, row, kinds, price, moved, chosen, saving)
        curves, far = 0.0, _FAR * smooth
        for i in range(staying):
            best, one = saving[i], rows.home[row, chosen[i]]
            rival, other = find_rival(rows, row, chosen[i], kinds, price, moved)
            passed, bend = 0.0, 0.0
            if rival < best + far:
                root = np.sqrt((best - rival) * (best - rival) + smooth * smooth)
                passed = 0.5 + 0.5 * (best - rival) / root
                bend = 0.5 * smooth * smooth / (root * root * root)
                best = (best + rival - root) / 2
            root = np.sqrt(best * best + smooth * smooth)
            stay = 0.5 - 0.5 * best / root
            value += share * (best - root) / 2
            wanted -= stay
            stay *= share
            curve = 0.0
            if abs(best) < far:
                curve = share * 0.5 * smooth * smooth / (root * root * root)
            curves += curve
            # Two brokers that meet would spoil the arrow: each gets twice what both share.
            both, kept = 2 * bend * stay, 1.0 - passed
            bends = curve * kept, both
            add_choice(rows, row, kinds, one, stay * kept, bends, slopes, targets, count)
            if passed > 0.0:
                bends = curve * passed, both
                add_choice(rows, row, kinds, other, stay * passed, bends, slopes, targets, count)
        add_targets(rows, row, kinds, share * wanted, curves, slopes, targets, count)
        for s in range(rows.home.shape[1]):
            b = rows.home[row, s]
            if b < 0:
                continue
            for k in range(kinds):
                of_broker[b, k] -= share * rows.amount[row, k]
                value -= share * rows.amount[row, k] * price[b, k]
    return value


@inlined
def add_brokers(limits: Floats, kinds: int, prices: Floats, width: float, slopes: Slopes) -> float:
    """Add the derivatives of what brokers pay for limits, and return what that is.

    Args:
        width: How smooth it is, where a price changes from one limit to the other.
    """
    value = 0.0
    for b in range(prices.shape[0]):
        for k in range(kinds):
            price = prices[b, k]
            middle = (limits[1, b, k] + limits[2, b, k]) / 2
            half = (limits[2, b, k] - limits[1, b, k]) / 2
            size = np.sqrt(price * price + width * width)
            value += price * (limits[0, b, k] - middle) - half * size
            slopes.of_broker[b, k] += limits[0, b, k] - middle - half * price / size
            slopes.within[b, k, k] += half * width * width / (size * size * size)
    return value


@inlined
def find_rival(
    rows: Rows, row: int, slot: int, kinds: int, price: Floats, moved: float
) -> tuple[float, int]:
    """The best replica that could stay instead of a slot's, as they share a rack for one.

    Returns:
        What it costs more than a move that it stays, and its broker. Infinity if there is none.
    """
    least, broker = np.inf, -1
    if rows.free[row] or rows.rack_limit[row] != 1:
        return least, broker
    for s in range(rows.home.shape[1]):
        b = rows.home[row, s]
        if b < 0 or s == slot or rows.rack[row, s] != rows.rack[row, slot]:
            continue
        more = added_by(rows, row, s, kinds, price, moved)
        if more < least:
            least, broker = more, b
    return least, broker


@inlined
def add_choice(
    rows: Rows,
    row: int,
    kinds: int,
    broker: int,
    stay: float,
    bends: tuple[float, float],
    slopes: Slopes,
    targets: Targets,
    count: int,
) -> None:
    """Add the derivatives of the choice of a replica that may stay on a broker.

    Args:
        stay: How much of it stays.
        bends: The curvature by what it saves; more of it, by the broker's price alone.
        count: How many targets there are.
    """
    curve, bend = bends
    for k in range(kinds):
        slopes.of_broker[broker, k] += stay * rows.amount[row, k]
    if curve + bend == 0.0:
        return
    for k in range(kinds):
        for j in range(kinds):
            amount = rows.amount[row, k] * rows.amount[row, j]
            slopes.within[broker, k, j] += (curve + bend) * amount
    for i in range(count):
        group, share = targets.group[i], targets.share[i]
        for k in range(kinds):
            for j in range(kinds):
                part = curve * (rows.amount[row, k] * rows.amount[row, j])
                slopes.mixed[broker, group, k, j] -= share * part


@inlined
def add_targets(
    rows: Rows,
    row: int,
    kinds: int,
    moving: float,
    curves: float,
    slopes: Slopes,
    targets: Targets,
    count: int,
) -> None:
    """Add the derivatives by the floors of targets.

    Args:
        moving: How many replicas move.
        curves: Of the choices of all of them.
        count: How many targets there are.
    """
    for i in range(count):
        one, share = targets.group[i], targets.share[i]
        for k in range(kinds):
            slopes.of_group[one, k] += moving * share * rows.amount[row, k]
        for h in range(count):
            other = targets.group[h]
            bend = curves * share * targets.share[h] + moving * targets.bend[i, h]
            if bend == 0.0:
                continue
            for k in range(kinds):
                for j in range(kinds):
                    part = bend * rows.amount[row, k] * rows.amount[row, j]
                    slopes.between[one, other, k, j] += part


@compiled
def slope_along(group: Ints, slopes: Slopes, floor: Floats, extra: Floats) -> float:
    """How much the smooth bound rises by a step of floors and extras, as far as slopes tell."""
    total = 0.0
    for g in range(floor.shape[0]):
        for k in range(floor.shape[1]):
            total += slopes.of_group[g, k] * floor[g, k]
    for b in range(extra.shape[0]):
        for k in range(extra.shape[1]):
            total += slopes.of_broker[b, k] * (floor[group[b], k] + extra[b, k])
    return total
