"""The search's moves, compiled: what a move gains, whether it is allowed, and passes over replicas.

The gain of a move is how much it lowers the potential, the sum over brokers and quantities of::

    soft * (load above most, or below least) + hard * (load above capacity)
        + pull * (load - middle)**2

and over topics and brokers of the replicas outside the topic's limits. Whoever calls compares it
with what the move costs. Ties go to the lowest broker, so the order of rows is all that decides.
"""

from __future__ import annotations

import numpy as np

from regent_rebalance.case import Case, Floats, State
from regent_rebalance.jit import compiled, inlined
from regent_rebalance.ragged import Bools, Ints

NOWHERE = -1

SLIGHT = 1e-9
"""A gain below this is none: it may be what rounding has left."""


@inlined
def potential(
    least: Floats,
    most: Floats,
    capacity: Floats,
    middle: Floats,
    pull: Floats,
    soft: Floats,
    hard: Floats,
    broker: int,
    quantity: int,
    load: float,
) -> float:
    """The potential of one broker and quantity; arrays as those of a case."""
    total = 0.0
    if load > most[broker, quantity]:
        total += soft[quantity] * (load - most[broker, quantity])
    elif load < least[broker, quantity]:
        total += soft[quantity] * (least[broker, quantity] - load)
    if load > capacity[broker, quantity]:
        total += hard[quantity] * (load - capacity[broker, quantity])
    off = load - middle[broker, quantity]
    return float(total + pull[broker, quantity] * off * off)


@inlined
def price(case: Case, broker: int, quantity: int, load: float) -> float:
    """The same with the arrays of a case."""
    return potential(
        case.least,
        case.most,
        case.capacity,
        case.middle,
        case.pull,
        case.soft,
        case.hard,
        broker,
        quantity,
        load,
    )


@inlined
def first_gain(case: Case, broker: int, quantity: int, load: float) -> float:
    """What a broker's next unit gains. The potential is convex: no further one gains more."""
    gain = 2 * case.pull[broker, quantity] * (case.middle[broker, quantity] - load)
    if load >= case.most[broker, quantity]:
        gain -= case.soft[quantity]
    elif load < case.least[broker, quantity]:
        gain += case.soft[quantity]
    if load >= case.capacity[broker, quantity]:
        gain -= case.hard[quantity]
    return float(gain)


@inlined
def gain_of_load(case: Case, state: State, broker: int, row: int, sign: float, led: bool) -> float:
    """What it gains that a broker gets (sign 1) or loses (-1) a replica of a row."""
    gain, kinds = 0.0, case.replica_loads.shape[1]
    for k in range(kinds):
        after = state.load[broker, k] + sign * case.replica_loads[row, k]
        gain += state.price[broker, k] - price(case, broker, k, after)
    if led:
        gain += gain_of_leader(case, state, broker, row, sign)
    return gain


@inlined
def gain_of_leader(case: Case, state: State, broker: int, row: int, sign: float) -> float:
    """What it gains that a broker begins (sign 1) or ceases (-1) to lead a row."""
    gain, kinds = 0.0, case.replica_loads.shape[1]
    for j in range(case.leader_loads.shape[1]):
        after = state.load[broker, kinds + j] + sign * case.leader_loads[row, j]
        gain += state.price[broker, kinds + j] - price(case, broker, kinds + j, after)
    return gain


@inlined
def gain_of_topic(case: Case, state: State, broker: int, row: int, sign: int) -> float:
    """The same for the limits of the row's topic."""
    if not case.by_topic:
        return 0.0
    topic = case.topic[row]
    least, most = case.topic_least[topic], case.topic_most[topic]
    count = state.topic_count[topic, broker]
    before = max(0, count - most) + max(0, least - count)
    after = max(0, count + sign - most) + max(0, least - count - sign)
    return float(before - after) * case.topic_weight


@compiled
def gain_of_leaving(case: Case, state: State, broker: int, row: int, led: bool) -> float:
    """What it gains that a broker loses a replica of a row, loads and topic together."""
    gain = gain_of_load(case, state, broker, row, -1.0, led)
    return gain + gain_of_topic(case, state, broker, row, -1)


@inlined
def is_home(case: Case, row: int, broker: int) -> bool:
    """Whether the broker had a replica of the row at the start."""
    home, found = case.home, False
    for s in range(home.shape[1]):
        found = found or home[row, s] == broker
    return found


@inlined
def move_cost(case: Case, row: int, source: int, target: int) -> float:
    """What a move costs: nothing from one new broker to another, less than nothing back home."""
    cost = 0.0
    if not is_home(case, row, target):
        cost += case.cost[row]
    if source >= 0 and not is_home(case, row, source):
        cost -= case.cost[row]
    return cost


@inlined
def has_room(case: Case, state: State, row: int, slot: int, broker: int) -> bool:
    """Whether the rack of a broker may have the replica of a slot, and the broker has none."""
    limit = case.rack_limit[row]
    if case.keep_crowds:
        limit = max(limit, kept_in_rack(case, row, case.rack[broker]))
    free = is_free(state.replicas, case.rack, case.keeps, row, slot, broker, limit)
    return free and stays_spread(case, state, row, slot, broker)


@inlined
def is_free(
    replicas: Ints, rack: Ints, keeps: Bools, row: int, slot: int, broker: int, limit: int
) -> bool:
    """The same with a limit on the broker's rack, and arrays as those of a state and a case."""
    used, mine = 0, rack[broker]
    for s in range(replicas.shape[1]):
        held = replicas[row, s]
        if s == slot or held < 0:
            continue
        if held == broker:
            return False
        used += int(rack[held] == mine and keeps[held])
    return used < limit


@inlined
def stays_spread(case: Case, state: State, row: int, slot: int, broker: int) -> bool:
    """Whether a row has its least racks still once a broker has the replica of a slot."""
    least: int = case.least_racks[row]
    return least == 0 or racks_with(case, state, row, slot, broker) >= least


@compiled
def racks_with(case: Case, state: State, row: int, slot: int, broker: int) -> int:
    """How many racks a row has once a broker has the replica of a slot."""
    racks = 1
    for s in range(state.replicas.shape[1]):
        held = state.replicas[row, s]
        if s == slot or held < 0 or not case.keeps[held]:
            continue
        is_first = case.rack[held] != case.rack[broker]
        for other in range(s):
            before = state.replicas[row, other]
            if other != slot and before >= 0 and case.keeps[before]:
                is_first = is_first and case.rack[before] != case.rack[held]
        racks += int(is_first)
    return racks


@compiled
def kept_in_rack(case: Case, row: int, rack: int) -> int:
    """How many replicas of the row a rack had at the start, on brokers that may keep them."""
    kept = 0
    for s in range(case.home.shape[1]):
        held = case.home[row, s]
        kept += int(held >= 0 and case.keeps[held] and case.rack[held] == rack)
    return kept


@inlined
def is_open(case: Case, row: int, broker: int) -> bool:
    """Whether a broker may get a replica of the row, as far as it is concerned itself."""
    return case.takes[broker] or (case.keeps[broker] and is_home(case, row, broker))


@inlined
def write_reach(
    first: Floats,
    replica_loads: Floats,
    leader_loads: Floats,
    row: int,
    kinds: int,
    leading: int,
    reached: Floats,
) -> None:
    """Write what each broker gains at most from a replica of a row, its topic left out.

    A quantity after the other: so several brokers are one instruction.

    Args:
        leading: How many quantities that leaders alone bring come with it.
    """
    brokers = reached.shape[0]
    for broker in range(brokers):
        reached[broker] = 0.0
    for k in range(kinds):
        amount = replica_loads[row, k]
        for broker in range(brokers):
            reached[broker] += amount * first[k, broker]
    for j in range(leading):
        amount = leader_loads[row, j]
        for broker in range(brokers):
            reached[broker] += amount * first[kinds + j, broker]


@compiled
def best_target(  # noqa: C901 - most of the time is spent in this loop
    case: Case,
    state: State,
    row: int,
    slot: int,
    forced: bool,
    given: float,
    least_enough: float,
    threshold: float,
    most_reduced: float,
    prices: Floats,
    only_lacking: bool,
) -> tuple[int, float]:
    """The broker that gains most from the replica of a slot, and what it gains.

    Args:
        forced: The replica must go somewhere: any gain, and a broker that is full of the topic will
            do.
        only_lacking: Brokers that lack nothing would not gain enough.
        given: What it gains that the replica leaves.
        least_enough: No broker that gains less gains enough.
        threshold, most_reduced, prices: What is enough, as :func:`regent_rebalance.sweeps.sweep`
            has it.
    """
    load, now, reached = state.load, state.price, state.reached
    least, most, capacity, middle = case.least, case.most, case.capacity, case.middle
    pull, soft, hard = case.pull, case.soft, case.hard
    replica_loads, leader_loads, takes = case.replica_loads, case.leader_loads, case.takes
    replicas, rack, keeps, limit = state.replicas, case.rack, case.keeps, case.rack_limit[row]
    counts, by_topic, crowds, topic = state.topic_count, case.by_topic, case.keep_crowds, 0
    topic_weight, strict = case.topic_weight, case.topic_strict and not forced
    fewest, full = 0, 0
    if by_topic:
        topic = case.topic[row]
        fewest, full = case.topic_least[topic], case.topic_most[topic]
    kinds, leading = replica_loads.shape[1], leader_loads.shape[1]
    if state.leader[row] != slot:
        leading = 0
    source = replicas[row, slot]
    spread = case.least_racks[row] > 0
    saved = dual_price(case, row, source, prices) if most_reduced < np.inf else 0.0
    write_reach(state.first, replica_loads, leader_loads, row, kinds, leading, reached)
    lacked = topic_weight if by_topic and state.topic_short[topic] > 0 else 0.0
    best, best_gain = NOWHERE, -np.inf if forced else np.nextafter(least_enough, -np.inf)
    for broker in range(takes.shape[0]):
        if reached[broker] + lacked <= best_gain:
            continue
        if only_lacking and not state.lacks[broker]:
            continue
        if not takes[broker] and not is_open(case, row, broker):
            continue
        gain = 0.0
        if by_topic and counts[topic, broker] >= full:
            if strict:
                continue
            gain = -topic_weight
        elif by_topic and counts[topic, broker] < fewest:
            gain = topic_weight
        reach = gain + reached[broker]
        if reach <= best_gain:
            continue
        cost = move_cost(case, row, source, broker)
        enough = -np.inf if forced else max(SLIGHT, threshold * cost) - given
        if reach < enough:
            continue
        paid = dual_price(case, row, broker, prices) if most_reduced < np.inf else 0.0
        if cost - saved + paid > most_reduced:
            continue
        room = max(limit, kept_in_rack(case, row, rack[broker])) if crowds else limit
        if not is_free(replicas, rack, keeps, row, slot, broker, room):
            continue
        if spread and not stays_spread(case, state, row, slot, broker):
            continue
        for k in range(kinds):
            after = load[broker, k] + replica_loads[row, k]
            gain += now[broker, k] - potential(
                least, most, capacity, middle, pull, soft, hard, broker, k, after
            )
        for j in range(leading):
            k = kinds + j
            after = load[broker, k] + leader_loads[row, j]
            gain += now[broker, k] - potential(
                least, most, capacity, middle, pull, soft, hard, broker, k, after
            )
        if gain > best_gain and gain >= enough:
            best, best_gain = broker, gain
    return best, best_gain


@inlined
def dual_price(case: Case, row: int, broker: int, prices: Floats) -> float:
    """What a replica of a row pays on a broker at dual prices."""
    paid = 0.0
    for k in range(case.replica_loads.shape[1]):
        paid += case.replica_loads[row, k] * prices[broker, k]
    return paid


@compiled
def count_replicas(case: Case, load: Floats) -> None:
    """Add to the loads of brokers what replicas bring at the start, without what leaders bring."""
    for row in range(case.home.shape[0]):
        for slot in range(case.home.shape[1]):
            broker = case.home[row, slot]
            if broker >= 0:
                for k in range(case.replica_loads.shape[1]):
                    load[broker, k] += case.replica_loads[row, k]


@compiled
def count_leaders_and_topics(case: Case, state: State) -> None:
    """Choose leaders as at the start, and add what they bring; count replicas of topics."""
    kinds = case.replica_loads.shape[1]
    for row in range(case.home.shape[0]):
        for slot in range(case.home.shape[1]):
            broker = case.home[row, slot]
            if broker < 0:
                continue
            if case.by_topic:
                state.topic_count[case.topic[row], broker] += 1
            if broker == case.led_by[row]:
                state.leader[row] = slot
        if state.leader[row] >= 0:
            for j in range(case.leader_loads.shape[1]):
                state.load[case.led_by[row], kinds + j] += case.leader_loads[row, j]


@compiled
def refresh(case: Case, state: State) -> None:
    """Make a state fit a case with other limits or prices than it was used with."""
    for k in range(state.load.shape[1]):
        state.short[k] = 0
        for broker in range(state.load.shape[0]):
            state.price[broker, k] = price(case, broker, k, state.load[broker, k])
            state.first[k, broker] = first_gain(case, broker, k, state.load[broker, k])
            state.short[k] += int(state.load[broker, k] < case.least[broker, k])
    for broker in range(state.load.shape[0]):
        state.outside[broker] = is_outside(case, state, broker)
        state.lacks[broker] = lacks_something(case, state, broker)
    for topic in range(state.topic_short.shape[0]):
        state.topic_short[topic] = 0
        for broker in range(state.load.shape[0]):
            few = state.topic_count[topic, broker] < case.topic_least[topic]
            state.topic_short[topic] += int(few and case.keeps[broker])


@compiled
def add_load(case: Case, state: State, broker: int, row: int, sign: float, part: int) -> None:
    """Add a row's loads to a broker, or take them off: part 0 the replica's, 1 the leader's."""
    kinds = case.replica_loads.shape[1]
    count = kinds if part == 0 else case.leader_loads.shape[1]
    for i in range(count):
        k = i if part == 0 else kinds + i
        amount = case.replica_loads[row, i] if part == 0 else case.leader_loads[row, i]
        least = case.least[broker, k]
        state.short[k] -= int(state.load[broker, k] < least)
        state.load[broker, k] += sign * amount
        state.short[k] += int(state.load[broker, k] < least)
        state.price[broker, k] = price(case, broker, k, state.load[broker, k])
        state.first[k, broker] = first_gain(case, broker, k, state.load[broker, k])
    state.outside[broker] = is_outside(case, state, broker)
    state.lacks[broker] = lacks_something(case, state, broker)


@inlined
def add_of_topic(case: Case, state: State, broker: int, row: int, sign: int) -> None:
    """Count a replica of a row's topic that a broker gets (sign 1) or loses (-1)."""
    if not case.by_topic:
        return
    topic = case.topic[row]
    before = state.topic_count[topic, broker]
    state.topic_count[topic, broker] = before + sign
    if case.keeps[broker]:
        least = case.topic_least[topic]
        state.topic_short[topic] += int(before + sign < least) - int(before < least)


@inlined
def lacks_something(case: Case, state: State, broker: int) -> bool:
    """Whether a broker has less than the least of a quantity."""
    lacks = False
    for k in range(state.load.shape[1]):
        lacks = lacks or state.load[broker, k] < case.least[broker, k]
    return lacks


@inlined
def is_outside(case: Case, state: State, broker: int) -> bool:
    """Whether a broker is outside a limit."""
    for k in range(state.load.shape[1]):
        load = state.load[broker, k]
        most = min(case.most[broker, k], case.capacity[broker, k])
        if load > most or load < case.least[broker, k]:
            return True
    return False


@compiled
def place(case: Case, state: State, row: int, slot: int, target: int) -> None:
    """Put the replica of a slot on a broker, or on none (NOWHERE). Its leadership goes with it."""
    source = state.replicas[row, slot]
    led = state.leader[row] == slot
    if source >= 0:
        add_load(case, state, source, row, -1.0, 0)
        if led:
            add_load(case, state, source, row, -1.0, 1)
        add_of_topic(case, state, source, row, -1)
    state.replicas[row, slot] = target
    if target >= 0:
        add_load(case, state, target, row, 1.0, 0)
        if led:
            add_load(case, state, target, row, 1.0, 1)
        add_of_topic(case, state, target, row, 1)
    elif led:
        state.leader[row] = NOWHERE


@compiled
def lead(case: Case, state: State, row: int, slot: int) -> None:
    """Let the replica of a slot lead."""
    before = state.leader[row]
    if before >= 0:
        add_load(case, state, state.replicas[row, before], row, -1.0, 1)
    state.leader[row] = slot
    add_load(case, state, state.replicas[row, slot], row, 1.0, 1)
