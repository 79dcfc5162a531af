"""What sweeps look at, and where they move it, against every move that there is."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from regent_rebalance.case import Case, Floats, State
from regent_rebalance.errors import InfeasibleGoalsError
from regent_rebalance.kernel import lead, place
from regent_rebalance.prices import Prices
from regent_rebalance.problem import problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.ragged import Bools, Ints
from regent_rebalance.search import start_state
from regent_rebalance.sweeps import BESIDES, find_worthwhile, sweep
from regent_rebalance.weighted import case_of
from tests.support.examples import scaled_examples
from tests.unit.planner.clusters import patient
from tests.unit.planner.weighted_clusters import loaded_clusters, weighted_goals

ROUNDING = 1e-6
"""What the two ways of counting may differ by."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Cases of small clusters. Some topics are to have replicas on every broker."""
    snapshot = draw(loaded_clusters())
    goals = draw(weighted_goals(snapshot))
    try:
        problem = problem_of(snapshot, goals)
        quantities = quantities_of(snapshot, goals, problem)
    except InfeasibleGoalsError:
        assume(False)
        raise
    ordered = [q for q in quantities if not q.led] + [q for q in quantities if q.led]
    case = case_of(snapshot, goals, problem, ordered)
    least = np.array([draw(st.integers(0, 2)) for _ in case.topic_least], dtype=np.int64)
    most = np.maximum(case.topic_most, least)
    case = case._replace(topic_least=least, topic_most=most, by_topic=draw(st.booleans()))
    # With the widest limits topics are all that counts; with the strongest pull it counts as much.
    margin = draw(st.sampled_from([0.0, 20.0, 1e6]))
    return case._replace(
        least=case.least - margin,
        most=case.most + margin,
        capacity=case.capacity + margin,
        pull=case.pull * draw(st.sampled_from([1.0, 20.0])),
    )


@st.composite
def states(draw: st.DrawFn, case: Case) -> State:
    """What a few moves and changes of leaders make of the start."""
    state = start_state(case)
    for _ in range(draw(st.integers(0, 8)) if case.home.size else 0):
        row = draw(st.integers(0, len(case.home) - 1))
        slot = draw(st.sampled_from(np.flatnonzero(state.replicas[row] >= 0).tolist()))
        open_ = list(targets(case, state.replicas, row, slot))
        if draw(st.booleans()) and open_:
            place(case, state, row, slot, draw(st.sampled_from(open_)))
        else:
            lead(case, state, row, slot)
    return state


@st.composite
def prices_of(draw: st.DrawFn, case: Case) -> Prices:
    """Any prices of two groups of brokers."""
    brokers, kinds = len(case.rack), case.replica_loads.shape[1]

    def drawn(rows: int, least: int) -> Floats:
        numbers = st.lists(st.integers(least, 8), min_size=rows * kinds, max_size=rows * kinds)
        return np.array(draw(numbers), dtype=np.float64).reshape(rows, kinds) / 64

    group = draw(st.lists(st.integers(0, 1), min_size=brokers, max_size=brokers))
    return Prices(np.array(group, dtype=np.int64), drawn(2, -8), drawn(brokers, 0))


def targets(case: Case, replicas: Ints, row: int, slot: int) -> Iterator[int]:
    """Brokers that may get the replica of a slot."""
    others = [int(b) for s, b in enumerate(replicas[row]) if s != slot and b >= 0]
    home = [int(b) for b in case.home[row] if b >= 0]
    for broker in range(len(case.rack)):
        returns = case.keeps[broker] and broker in home
        if broker in (*others, replicas[row, slot]) or not (case.takes[broker] or returns):
            continue
        limit = int(case.rack_limit[row])
        if case.keep_crowds:
            limit = max(limit, crowd(case, home, case.rack[broker]))
        spread = {int(case.rack[b]) for b in (*others, broker) if case.keeps[b]}
        if crowd(case, others, case.rack[broker]) < limit and len(spread) >= case.least_racks[row]:
            yield broker


def crowd(case: Case, brokers: list[int], rack: int) -> int:
    return sum(bool(case.keeps[b] and case.rack[b] == rack) for b in brokers)


def potential(case: Case, replicas: Ints, leader: Ints) -> float:
    """What is lowered, counted from the lists alone."""
    brokers, kinds = len(case.rack), case.replica_loads.shape[1]
    load = np.zeros((brokers, kinds + case.leader_loads.shape[1]))
    count = np.zeros((len(case.topic_most), brokers))
    for row, slot in np.argwhere(replicas >= 0).tolist():
        broker = replicas[row, slot]
        load[broker, :kinds] += case.replica_loads[row]
        count[case.topic[row], broker] += 1
        if leader[row] == slot:
            load[broker, kinds:] += case.leader_loads[row]
    off = np.maximum(0, load - case.most) + np.maximum(0, case.least - load)
    total = (case.soft * off + case.hard * np.maximum(0, load - case.capacity)).sum()
    total += (case.pull * (load - case.middle) ** 2).sum()
    if case.by_topic:
        above = np.maximum(0, count - case.topic_most[:, None])
        below = np.maximum(0, case.topic_least[:, None] - count)
        total += case.topic_weight * (above + below).sum()
    return float(total)


def gain_and_margin(
    case: Case, state: State, at: tuple[int, int, int], limits: tuple[float, float], prices: Floats
) -> tuple[float, float]:
    """What the move of a replica gains, and how much more than enough: less than nothing if it may
    not be.

    Args:
        at: Row, slot and target.
        limits: The threshold and the greatest reduced cost.
    """
    row, slot, target = at
    source = int(state.replicas[row, slot])
    if case.by_topic and case.topic_strict:
        held = (state.replicas == target) & (case.topic == case.topic[row])[:, None]
        if held.sum() >= case.topic_most[case.topic[row]]:
            return -np.inf, -np.inf
    home = case.home[row].tolist()
    cost = case.cost[row] * (int(target not in home) - int(source not in home))
    reduced = cost - case.replica_loads[row] @ (prices[source] - prices[target])
    moved = state.replicas.copy()
    moved[row, slot] = target
    gain = potential(case, state.replicas, state.leader) - potential(case, moved, state.leader)
    threshold, most_reduced = limits
    if reduced > most_reduced:
        return -np.inf, -np.inf
    return gain, gain - max(0.0, threshold * cost)


def worthwhile(
    case: Case, state: State, limits: tuple[float, float], prices: Prices, room: int
) -> Bools:
    """What the filter says of each row and slot.

    Args:
        room: How many brokers that are short are asked one by one.
    """
    found = np.empty(state.replicas.size, dtype=np.bool_)
    slopes = np.empty((state.load.shape[1], state.load.shape[0] + BESIDES))
    short = np.empty(room, dtype=np.int64)
    saved, of_brokers = prices.saved(case).reshape(-1), prices.of_brokers()
    find_worthwhile(case, state, *limits, of_brokers, saved, slopes, short, found)
    return found.reshape(state.replicas.shape)


def in_need(case: Case, state: State) -> Bools:
    """Brokers outside a limit; all of them if one lacks something."""
    most = np.minimum(case.most, case.capacity)
    if (state.load < case.least).any():
        return np.ones(len(case.rack), dtype=np.bool_)
    return np.asarray((state.load > most).any(axis=1))


many = settings(patient, max_examples=scaled_examples(3).max_examples)


@st.composite
def limits_of(draw: st.DrawFn) -> tuple[float, float]:
    """A threshold and a greatest reduced cost."""
    thresholds = st.sampled_from([0.0, 0.005, 0.3, 1.2, 4.0])
    return draw(thresholds), draw(st.sampled_from([0.05, 0.2, np.inf]))


@many
@given(data=st.data())
def test_no_replica_that_is_passed_over_has_a_move_that_gains_enough(data: st.DataObject) -> None:
    """Where nobody is outside a limit and nobody lacks anything the pull alone is no reason."""
    case = data.draw(cases())
    state, prices = data.draw(states(case)), data.draw(prices_of(case))
    limits = data.draw(limits_of())
    found = worthwhile(case, state, limits, prices, data.draw(st.sampled_from([1, 64])))
    needy, flat = in_need(case, state), case._replace(pull=np.zeros_like(case.pull))
    for row, slot in np.argwhere((state.replicas >= 0) & ~found).tolist():
        judge = case if needy[state.replicas[row, slot]] else flat
        for target in targets(case, state.replicas, row, slot):
            at = (row, slot, target)
            _, margin = gain_and_margin(judge, state, at, limits, prices.of_brokers())
            assert margin < ROUNDING, at


@many
@given(data=st.data())
def test_a_replica_moves_to_the_broker_that_gains_most(data: st.DataObject) -> None:
    """If none gains enough it stays."""
    case = data.draw(cases())
    state, prices = data.draw(states(case)), data.draw(prices_of(case)).of_brokers()
    limits, needy = data.draw(limits_of()), in_need(case, state)
    everything, calm = np.ones(state.replicas.size, dtype=np.bool_), np.empty(state.load.shape[1])
    for row, slot in np.argwhere(state.replicas >= 0).tolist():
        source = state.replicas[row, slot]
        if not needy[source]:
            continue
        moves = {
            target: gain_and_margin(case, state, (row, slot, target), limits, prices)
            for target in targets(case, state.replicas, row, slot)
        }
        after = copy.deepcopy(state)
        order = np.array([row * state.replicas.shape[1] + slot])
        moved = sweep(case, after, order, everything, *limits, prices, calm)
        target = int(after.replicas[row, slot])
        assert moved == (target != source)
        enough = [gain for gain, margin in moves.values() if margin >= ROUNDING]
        if moved:
            assert moves[target][1] > -ROUNDING
            assert moves[target][0] >= max(enough, default=-np.inf) - ROUNDING
        else:
            assert not enough
