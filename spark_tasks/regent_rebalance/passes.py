"""Passes of the search besides sweeps, compiled: repairs, leaders, exchanges, taking moves back."""

from __future__ import annotations

import numpy as np

from regent_rebalance.case import Case, State
from regent_rebalance.jit import compiled, inlined
from regent_rebalance.kernel import (
    NOWHERE,
    SLIGHT,
    best_target,
    gain_of_leader,
    gain_of_leaving,
    gain_of_load,
    gain_of_topic,
    has_room,
    is_home,
    is_open,
    lead,
    place,
    price,
)
from regent_rebalance.ragged import Bools, Ints

KEPT, CROWDED, LOST = 0, 1, 2
"""How much a replica has to go: not at all; its rack has too many; its broker may not keep it."""


@compiled
def need(case: Case, state: State, row: int, slot: int) -> int:
    """How much the replica of a slot has to go."""
    broker = state.replicas[row, slot]
    if not case.keeps[broker]:
        return LOST
    return KEPT if has_room(case, state, row, slot, broker) else CROWDED


@inlined
def present(state: State, row: int) -> int:
    """How many replicas a row has."""
    count = 0
    for s in range(state.replicas.shape[1]):
        count += int(state.replicas[row, s] >= 0)
    return count


@compiled
def find_broken(case: Case, state: State, broken: Bools) -> None:
    """Write for each row whether replicas are too many or too few, or one has to go."""
    for row in range(state.replicas.shape[0]):
        bad = present(state, row) != case.factor[row]
        for s in range(state.replicas.shape[1]):
            bad = bad or (state.replicas[row, s] >= 0 and need(case, state, row, s) > KEPT)
        broken[row] = bad


@compiled
def repair(case: Case, state: State, order: Ints) -> int:
    """Give each row its replicas on brokers that may keep them, within racks' limits.

    Returns:
        How many replicas found no broker.
    """
    slots, missing = state.replicas.shape[1], 0
    for row in order:
        count = present(state, row)
        while count > case.factor[row]:
            drop(case, state, row)
            count -= 1
        for _ in range(2 * slots):
            if not move_neediest(case, state, row, case.factor[row] - count):
                break
            count = present(state, row)
        missing += case.factor[row] - count
        for s in range(slots):
            if state.replicas[row, s] >= 0:
                missing += int(need(case, state, row, s) > KEPT)
    return missing


@compiled
def drop(case: Case, state: State, row: int) -> None:
    """Remove the replica that has to go most; among equals the one whose broker gains most."""
    best, best_need, best_gain = NOWHERE, -1, -np.inf
    for s in range(state.replicas.shape[1]):
        broker = state.replicas[row, s]
        if broker < 0:
            continue
        needed = need(case, state, row, s)
        gain = gain_of_leaving(case, state, broker, row, state.leader[row] == s)
        if needed > best_need or (needed == best_need and gain > best_gain):
            best, best_need, best_gain = s, needed, gain
    place(case, state, row, best, NOWHERE)


@compiled
def worst_need(case: Case, state: State, row: int, missing: int) -> int:
    """How much the replica that has to go most has to; a missing one counts as lost."""
    worst = KEPT
    for s in range(state.replicas.shape[1]):
        if state.replicas[row, s] >= 0:
            worst = max(worst, need(case, state, row, s))
        elif missing > 0:
            worst = LOST
    return worst


@compiled
def move_neediest(case: Case, state: State, row: int, missing: int) -> bool:
    """Move a replica that has to go, or add a missing one, where that gains most of all choices."""
    worst = worst_need(case, state, row, missing)
    if worst == KEPT:
        return False
    best, best_broker, best_gain = NOWHERE, NOWHERE, -np.inf
    for s in range(state.replicas.shape[1]):
        broker = state.replicas[row, s]
        if broker < 0 and missing <= 0:
            continue
        given = 0.0
        if broker >= 0:
            if need(case, state, row, s) != worst:
                continue
            given = gain_of_leaving(case, state, broker, row, state.leader[row] == s)
        target, taken = best_target(
            case, state, row, s, True, given, -np.inf, -np.inf, np.inf, state.price, False
        )
        if target >= 0 and given + taken > best_gain:
            best, best_broker, best_gain = s, target, given + taken
    if best >= 0:
        place(case, state, row, best, best_broker)
    return best >= 0


@inlined
def may_lead_anew(case: Case, state: State, row: int) -> bool:
    """Whether nobody leads a row, or another leader could help: the one that there is has too much
    or too little of something, or a broker leads too little."""
    now = state.leader[row]
    if now < 0 or state.outside[state.replicas[row, now]]:
        return True
    kinds, short = case.replica_loads.shape[1], False
    for j in range(case.leader_loads.shape[1]):
        short = short or state.short[kinds + j] > 0
    return short


@inlined
def best_leader(case: Case, state: State, row: int) -> tuple[int, float]:
    """The slot that it gains most to let lead a row, NOWHERE if there is none; what it gains."""
    now, given = state.leader[row], 0.0
    if now >= 0:
        given = gain_of_leader(case, state, state.replicas[row, now], row, -1.0)
    best, best_gain = NOWHERE, -np.inf
    for s in range(state.replicas.shape[1]):
        if s == now or state.replicas[row, s] < 0:
            continue
        gain = given + gain_of_leader(case, state, state.replicas[row, s], row, 1.0)
        if gain > best_gain:
            best, best_gain = s, gain
    return best, best_gain


@compiled
def find_away(case: Case, state: State, away: Bools) -> None:
    """Write for each replica, as row * slots + slot, whether it is on a broker that had none."""
    slots = state.replicas.shape[1]
    for row in range(state.replicas.shape[0]):
        for s in range(slots):
            broker = state.replicas[row, s]
            away[row * slots + s] = broker >= 0 and not is_home(case, row, broker)


@compiled
def find_leaders(case: Case, state: State, threshold: float, worthwhile: Bools) -> int:
    """Write for each row whether it has no leader, or another one gains at least a threshold.

    Returns:
        How many such rows there are.
    """
    found = 0
    for row in range(state.replicas.shape[0]):
        good = may_lead_anew(case, state, row)
        if good and state.leader[row] >= 0:
            good = best_leader(case, state, row)[1] >= threshold
        worthwhile[row] = good
        found += int(good)
    return found


@compiled
def lead_anew(case: Case, state: State, order: Ints, threshold: float) -> int:
    """Change leaders where that gains at least a threshold, and choose one where there is none.

    Returns:
        How many have changed.
    """
    changed = 0
    for row in order:
        if not may_lead_anew(case, state, row):
            continue
        best, gain = best_leader(case, state, row)
        if best >= 0 and (state.leader[row] < 0 or gain >= threshold):
            lead(case, state, row, best)
            changed += 1
    return changed


@compiled
def take_back(case: Case, state: State, order: Ints) -> int:
    """Take replicas home where no broker gains from their move, and give leaders back.

    The case has no pull: only limits count. Returns how many went home.
    """
    returned = 0
    for row in order:
        for s in range(state.replicas.shape[1]):
            broker = state.replicas[row, s]
            if broker < 0 or is_home(case, row, broker):
                continue
            led = state.leader[row] == s
            given = gain_of_leaving(case, state, broker, row, led)
            for h in range(state.replicas.shape[1]):
                home = case.home[row, h]
                if home < 0 or not is_open(case, row, home):
                    continue
                if not has_room(case, state, row, s, home):
                    continue
                taken = gain_of_load(case, state, home, row, 1.0, led)
                if given + taken + gain_of_topic(case, state, home, row, 1) >= 0.0:
                    place(case, state, row, s, home)
                    returned += 1
                    break
        returned += give_back(case, state, row)
    return returned


@compiled
def give_back(case: Case, state: State, row: int) -> int:
    """Let the leader of the start lead again, if that breaks no limit. Returns 1 if it does."""
    now, first = state.leader[row], case.led_by[row]
    if now < 0 or first < 0 or state.replicas[row, now] == first:
        return 0
    for s in range(state.replicas.shape[1]):
        if state.replicas[row, s] == first:
            gain = gain_of_leader(case, state, state.replicas[row, now], row, -1.0)
            if gain + gain_of_leader(case, state, first, row, 1.0) >= 0.0:
                lead(case, state, row, s)
                return 1
    return 0


@compiled
def gain_of_exchange(
    case: Case, state: State, row: int, slot: int, other_row: int, other_slot: int
) -> float:
    """What it gains that two replicas exchange their brokers."""
    broker, other = state.replicas[row, slot], state.replicas[other_row, other_slot]
    gain, kinds = 0.0, case.replica_loads.shape[1]
    for k in range(state.load.shape[1]):
        if k < kinds:
            passed = case.replica_loads[row, k] - case.replica_loads[other_row, k]
        else:
            passed = 0.0
            if state.leader[row] == slot:
                passed += case.leader_loads[row, k - kinds]
            if state.leader[other_row] == other_slot:
                passed -= case.leader_loads[other_row, k - kinds]
        here, there = state.load[broker, k], state.load[other, k]
        gain += state.price[broker, k] - price(case, broker, k, here - passed)
        gain += state.price[other, k] - price(case, other, k, there + passed)
    if case.by_topic and case.topic[row] != case.topic[other_row]:
        gain += gain_of_topic(case, state, broker, row, -1)
        gain += gain_of_topic(case, state, broker, other_row, 1)
        gain += gain_of_topic(case, state, other, row, 1)
        gain += gain_of_topic(case, state, other, other_row, -1)
    return gain


@inlined
def best_partner(
    case: Case,
    state: State,
    row: int,
    slot: int,
    on_broker: Ints,
    begin: int,
    end: int,
    stride: int,
    other: int,
    most_cost: float,
    least_gain: float,
) -> tuple[int, float]:
    """The replica of another broker that it gains most to exchange with that of a slot, and what
    that gains: more than the least. NOWHERE if there is none.

    Args:
        on_broker, begin, end, stride: Which replicas are looked at. Those that have left the broker
            since are passed over.
        most_cost: What a replica may cost.
    """
    slots, broker = state.replicas.shape[1], state.replicas[row, slot]
    best, best_gain = NOWHERE, least_gain
    for j in range(begin, end, stride):
        other_row, other_slot = on_broker[j] // slots, on_broker[j] % slots
        if other_row == row or state.replicas[other_row, other_slot] != other:
            continue
        if case.cost[other_row] > most_cost:
            continue
        gain = gain_of_exchange(case, state, row, slot, other_row, other_slot)
        if gain <= best_gain or not is_open(case, other_row, broker):
            continue
        if has_room(case, state, other_row, other_slot, broker):
            best, best_gain = on_broker[j], gain
    return best, best_gain


@compiled
def best_exchange(
    case: Case, state: State, at: int, begins: Ints, on_broker: Ints, tried: int
) -> int:
    """The replica that it gains most to exchange with that of a place, NOWHERE if none does."""
    slots = state.replicas.shape[1]
    row, slot = at // slots, at % slots
    best, best_gain = NOWHERE, SLIGHT
    for other in range(case.rack.shape[0]):
        if not is_open(case, row, other) or not has_room(case, state, row, slot, other):
            continue
        begin, end = begins[other], begins[other + 1]
        stride = max(1, (end - begin) // tried)
        found, gain = best_partner(
            case, state, row, slot, on_broker, begin, end, stride, other, np.inf, best_gain
        )
        if found >= 0:
            best, best_gain = found, gain
    return best


@compiled
def exchange_from(
    case: Case, state: State, broker: int, begins: Ints, on_broker: Ints, tried: int
) -> int:
    """Exchange replicas of a broker with others' until it is within limits or none helps.

    Args:
        begins: Where the replicas of each broker begin in ``on_broker``, and the end of the last.
        on_broker: Replicas as row * slots + slot, by broker when the pass began.
        tried: How many replicas of each broker are looked at, evenly spaced.

    Returns:
        How many exchanges were made.
    """
    slots, made = state.replicas.shape[1], 0
    step = max(1, (begins[broker + 1] - begins[broker]) // tried)
    for i in range(begins[broker], begins[broker + 1], step):
        row, slot = on_broker[i] // slots, on_broker[i] % slots
        if not state.outside[broker]:
            break
        if state.replicas[row, slot] != broker:
            continue
        best = best_exchange(case, state, on_broker[i], begins, on_broker, tried)
        if best >= 0:
            target = state.replicas[best // slots, best % slots]
            place(case, state, best // slots, best % slots, broker)
            place(case, state, row, slot, target)
            made += 1
    return made


@compiled
def substitute(
    case: Case, state: State, moved: Ints, begins: Ints, on_broker: Ints, tried: int, turn: int
) -> int:
    """Let other replicas move than those that have moved, where that gains, at no cost.

    Args:
        moved: Replicas that are not at home, as row * slots + slot.
        begins: Where the replicas of each broker begin in ``on_broker``, and the end of the last.
        on_broker: Replicas as row * slots + slot, by the broker that has them at the start.
        tried: How many replicas of each broker are looked at, evenly spaced.
        turn: The number of the pass: each looks at other ones.

    Returns:
        How many were substituted.
    """
    slots, made = state.replicas.shape[1], 0
    for at in moved:
        row, slot = at // slots, at % slots
        broker = state.replicas[row, slot]
        if broker < 0 or is_home(case, row, broker):
            continue
        for h in range(slots):
            home = case.home[row, h]
            if home < 0 or not (state.outside[home] or state.outside[broker]):
                continue
            if not is_open(case, row, home) or not has_room(case, state, row, slot, home):
                continue
            stride = max(1, (begins[home + 1] - begins[home]) // tried)
            begin, end = begins[home] + turn % stride, begins[home + 1]
            best, _ = best_partner(
                case, state, row, slot, on_broker, begin, end, stride, home, case.cost[row], SLIGHT
            )
            if best >= 0:
                place(case, state, row, slot, home)
                place(case, state, best // slots, best % slots, broker)
                made += 1
                break
    return made
