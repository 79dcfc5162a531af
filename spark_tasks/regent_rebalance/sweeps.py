"""Sweeps of the search, compiled: passes over replicas that move those that gain enough.

Few of a million replicas are worth a look. Which ones those are is found first, in the order in
which they lie in memory; they alone are visited in the order of the search.
"""

from __future__ import annotations

import numpy as np

from regent_rebalance.case import Case, Floats, State
from regent_rebalance.jit import compiled, inlined
from regent_rebalance.kernel import (
    SLIGHT,
    best_target,
    dual_price,
    gain_of_leaving,
    gain_of_topic,
    place,
)
from regent_rebalance.ragged import Bools, Ints


@compiled
def find_short(case: Case, state: State, short: Ints) -> int:
    """Write which brokers have less than the least of something. Returns how many.

    None is written if there is not room for all.
    """
    count = 0
    for broker in range(case.rack.shape[0]):
        if case.takes[broker] and state.lacks[broker]:
            if count == short.shape[0]:
                return 0
            short[count] = broker
            count += 1
    return count


BESIDES = 3
"""Columns of slopes after those of brokers."""


@compiled
def steepest(
    case: Case, state: State, prices: Floats, slopes: Floats, short: Ints, count: int
) -> None:
    """Write what a unit gains at most: where it leaves each broker, and then where it goes. The
    last columns are for brokers that are short: what it gains there at most, and the least price.

    The potential is convex: the first unit gains most.

    Args:
        short: Brokers that the column before those is not to cover.
        count: How many they are.
    """
    brokers, at = case.rack.shape[0], 0
    slopes[:] = 0.0
    for i in range(count):
        for k in range(slopes.shape[0]):
            first = state.first[k, short[i]]
            slopes[k, brokers + 1] = max(slopes[k, brokers + 1], first) if i > 0 else first
        for k in range(prices.shape[1]):
            price = prices[short[i], k]
            slopes[k, brokers + 2] = min(slopes[k, brokers + 2], price) if i > 0 else price
    for broker in range(brokers):
        is_short = at < count and short[at] == broker
        at += int(is_short)
        for k in range(slopes.shape[0]):
            load = state.load[broker, k]
            slope = 2 * case.pull[broker, k] * (load - case.middle[broker, k])
            if load > case.most[broker, k]:
                slope += case.soft[k]
            elif load < case.least[broker, k]:
                slope -= case.soft[k]
            if load > case.capacity[broker, k]:
                slope += case.hard[k]
            slopes[k, broker] = max(0.0, slope)
            if case.takes[broker] and not is_short:
                slopes[k, brokers] = max(slopes[k, brokers], state.first[k, broker])


@inlined
def amount_at(case: Case, slopes: Floats, row: int, broker: int, led: bool) -> float:
    """What a replica of a row amounts to at the slopes of a broker."""
    total, kinds = 0.0, case.replica_loads.shape[1]
    for k in range(kinds):
        total += case.replica_loads[row, k] * slopes[k, broker]
    if led:
        for j in range(case.leader_loads.shape[1]):
            total += case.leader_loads[row, j] * slopes[kinds + j, broker]
    return total


@inlined
def most_of_topic(case: Case, state: State, row: int, source: int) -> float:
    """What a replica's move gains at most for the limits of its topic."""
    if not case.by_topic:
        return 0.0
    topic = case.topic[row]
    above = state.topic_count[topic, source] > case.topic_most[topic]
    return float(int(above) + int(state.topic_short[topic] > 0)) * case.topic_weight


@inlined
def is_idle(case: Case, state: State, row: int, broker: int, led: bool) -> bool:
    """Whether nobody gains much if a replica leaves: its broker is within limits, none is short."""
    if state.outside[broker]:
        return False
    kinds = case.replica_loads.shape[1]
    for k in range(kinds + (case.leader_loads.shape[1] if led else 0)):
        if state.short[k] > 0:
            return False
    if case.by_topic and state.topic_short[case.topic[row]] > 0:
        return False
    return gain_of_topic(case, state, broker, row, -1) <= 0.0


@inlined
def least_cost(case: Case, state: State, row: int, slot: int) -> float:
    """What the move of a replica costs at least; less than nothing counts as nothing.

    It is nothing if the replica has moved before; and if another one of the row has, which has left
    a broker that costs nothing.
    """
    moved = state.replicas[row, slot] != case.home[row, slot]
    for s in range(case.home.shape[1]):
        home = case.home[row, s]
        moved = moved or (home >= 0 and state.replicas[row, s] != home)
    return 0.0 if moved else case.cost[row]


@compiled
def calmest(case: Case, calm: Floats) -> None:
    """Write for each quantity what a unit gains at most on a broker that does not lack it.

    The pull is all that draws it there, and draws most where the broker has the least.
    """
    calm[:] = 0.0
    for broker in range(case.rack.shape[0]):
        for k in range(calm.shape[0]):
            pulled = 2 * case.pull[broker, k] * (case.middle[broker, k] - case.least[broker, k])
            calm[k] = max(calm[k], pulled)


@inlined
def only_lacking_gain(
    case: Case, state: State, row: int, led: bool, calm: Floats, enough: float
) -> bool:
    """Whether a broker that lacks nothing, nor a replica of the topic, would gain too little."""
    if case.by_topic and state.topic_short[case.topic[row]] > 0:
        return False
    reach, kinds = 0.0, case.replica_loads.shape[1]
    for k in range(kinds):
        reach += case.replica_loads[row, k] * calm[k]
    for j in range(case.leader_loads.shape[1] if led else 0):
        reach += case.leader_loads[row, j] * calm[kinds + j]
    return reach < enough


@compiled
def find_worthwhile(
    case: Case,
    state: State,
    threshold: float,
    most_reduced: float,
    prices: Floats,
    saved: Floats,
    slopes: Floats,
    short: Ints,
    worthwhile: Bools,
) -> None:
    """Write for each replica, as row * slots + slot, whether a sweep has to look at it.

    Args:
        threshold, most_reduced, prices: As in :func:`sweep`.
        saved: What the move of each replica from home saves at most, at dual prices.
        slopes: Scratch: a row for each quantity, a number for each broker and as many more as
            :data:`BESIDES`.
        short: Scratch: brokers of which each is asked; if more are short all are taken for one.
    """
    slots, last = state.replicas.shape[1], case.rack.shape[0]
    count = find_short(case, state, short)
    steepest(case, state, prices, slopes, short, count)
    for row in range(state.replicas.shape[0]):
        for slot in range(slots):
            at = row * slots + slot
            worthwhile[at] = False
            source = state.replicas[row, slot]
            if source < 0:
                continue
            led = state.leader[row] == slot
            if is_idle(case, state, row, source, led):
                continue
            away = least_cost(case, state, row, slot)
            if away > 0.0 and case.cost[row] - saved[at] > most_reduced:
                continue
            enough = max(SLIGHT, threshold * away) - amount_at(case, slopes, row, source, led)
            enough -= most_of_topic(case, state, row, source)
            found = amount_at(case, slopes, row, last, led) >= enough
            pays = away > 0.0 and most_reduced < np.inf
            paid = case.cost[row] - dual_price(case, row, source, prices) if pays else -np.inf
            # Rounding never makes more of less: where the best of all does not do, none does.
            one_may = amount_at(case, slopes, row, last + 1, led) >= enough
            if pays:
                least = paid + amount_at(case, slopes, row, last + 2, False)
                one_may = one_may and least <= most_reduced
            for i in range(count if one_may else 0):
                if found:
                    break
                found = amount_at(case, state.first, row, short[i], led) >= enough
                if found and pays:
                    found = paid + dual_price(case, row, short[i], prices) <= most_reduced
            worthwhile[at] = found


@compiled
def sweep(
    case: Case,
    state: State,
    order: Ints,
    worthwhile: Bools,
    threshold: float,
    most_reduced: float,
    prices: Floats,
    calm: Floats,
) -> int:
    """Pass once over replicas and move those that gain enough. Returns how many moved.

    Args:
        order: Replicas as row * slots + slot.
        worthwhile: Of all replicas those that are to be looked at.
        threshold: Gain by cost that is enough.
        most_reduced: Moves with a greater reduced cost are left alone: that is the cost, less what
            is saved where the replica leaves, and what is paid where it goes.
        prices: Broker and replica quantity: dual prices, none below 0.
        calm: Scratch: a number for each quantity.
    """
    slots, moved = state.replicas.shape[1], 0
    calmest(case, calm)
    for at in order:
        if not worthwhile[at]:
            continue
        row, slot = at // slots, at % slots
        source, led = state.replicas[row, slot], state.leader[row] == slot
        if is_idle(case, state, row, source, led):
            continue
        given = gain_of_leaving(case, state, source, row, led)
        enough = max(SLIGHT, threshold * least_cost(case, state, row, slot)) - given
        only_lacking = only_lacking_gain(case, state, row, led, calm, enough)
        target, _ = best_target(
            case,
            state,
            row,
            slot,
            False,
            given,
            enough,
            threshold,
            most_reduced,
            prices,
            only_lacking,
        )
        if target >= 0:
            place(case, state, row, slot, target)
            moved += 1
    return moved
