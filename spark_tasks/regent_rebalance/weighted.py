"""Weighted plans: the search's case from a snapshot and goals, and its outcome as a placement."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from regent_rebalance.beside import Beside
from regent_rebalance.bounds import Bounds
from regent_rebalance.case import Case, Floats, State
from regent_rebalance.errors import InfeasibleGoalsError
from regent_rebalance.goals import TOPIC_DISTRIBUTION, Goals, topic_limits
from regent_rebalance.integer_program import MAX_CHOICES, improve
from regent_rebalance.kernel import refresh
from regent_rebalance.placement import Placement
from regent_rebalance.plan import Objective
from regent_rebalance.prices import Prices, dual_cost, find_prices
from regent_rebalance.priorities import Priorities, is_closer
from regent_rebalance.problem import Problem
from regent_rebalance.quantities import NO_LIMIT, Quantity
from regent_rebalance.ragged import Ints, ints, owners, positions
from regent_rebalance.replicas import shuffled
from regent_rebalance.search import (
    Guide,
    Search,
    leading,
    needs_repair,
    spent,
    start_state,
    unsettled,
)
from regent_rebalance.snapshot import Snapshot

_PULL = 0.05
"""What a load in the middle is worth more than one at a limit, as a share of a step outside."""

_HARD = 16.0
"""How much more a unit above a capacity weighs than one outside a soft limit."""

_WORTHWHILE = 0.001
"""A plan that costs so much more than its bound, as a share, may be improved."""

_EXACT = 2.0**53
"""Sums of integers in floats are exact below."""


@dataclass(frozen=True, slots=True)
class WeightedPlan:
    """What the search has found.

    Attributes:
        placement: Where replicas of movable partitions go.
        leading: For each movable partition the broker that leads it after the plan.
        objective: None if moves are what is saved.
        moves_bound: A plan that is outside limits by no more has at least so many new replicas.
        bytes_bound: It copies at least so many bytes; 0 if bytes are not to be saved.
    """

    placement: Placement
    leading: Ints
    objective: Objective | None
    moves_bound: int
    bytes_bound: int

    def improved(self, bounds: Bounds) -> Bounds:
        """Bounds that hold for all plans that meet racks and counts, with those of loads."""
        return dataclasses.replace(
            bounds, dual=max(bounds.dual, self.moves_bound), dual_bytes=self.bytes_bound
        )


def plan_weighted(
    snapshot: Snapshot,
    goals: Goals,
    problem: Problem,
    quantities: Sequence[Quantity],
    *,
    least_moves: Callable[[], int],
    at_once: bool = False,
) -> WeightedPlan:
    """Search a plan. Raises InfeasibleGoalsError if replicas find no broker.

    Args:
        least_moves: How many all plans have that meet the goals of racks and counts. Asked once
            racks are repaired; what it raises goes before what the search has to say.
        at_once: Whether nothing is computed beside something else, which takes memory.
    """
    shuffle = shuffled(problem.partitions)
    ordered = [q for q in quantities if not q.led] + [q for q in quantities if q.led]
    case = case_of(snapshot, goals, problem, ordered)
    # Repairs do without prices.
    with _pricing(case, shuffle, at_once=at_once) as pricing:
        state = _searched(case, Priorities.of(goals, ordered), pricing, shuffle, least_moves)
        prices = pricing.result()
    state, proved = _improved(case, state, prices, least_moves())
    placement = _placement(case, state)
    reached = within_reach(case, state)
    bound = partial(_bound, reached, shuffle)
    least = max(proved, bound(case.cost, prices))
    if goals.bytes_share == 0.0:
        moves, objective, copied = least, None, 0.0
    else:
        moves = bound(np.ones(problem.partitions), None)
        cost = spent(case, state)
        objective = Objective(goals.bytes_share, round(cost, 6), round(least, 6))
        copied = least if goals.bytes_share == 1.0 else bound(_cost(1.0, problem), None)
    return WeightedPlan(
        placement=placement,
        leading=leading(state),
        objective=objective,
        moves_bound=math.ceil(moves),
        bytes_bound=math.floor(copied * _mean(problem)),
    )


def _pricing(case: Case, shuffle: Ints, *, at_once: bool) -> Beside[Prices]:
    return Beside(partial(find_prices, case, case.cost, shuffle), at_once=at_once)


def _searched(
    case: Case,
    priorities: Priorities,
    pricing: Beside[Prices],
    shuffle: Ints,
    proved: Callable[[], object],
) -> State:
    """The best state that is found.

    Limits that a first search leaves unmet drag replicas about without ever being met. So they are
    relaxed to what has been reached, and a last search starts anew. It counts if it comes as close.

    Args:
        proved: Raises if hard goals cannot be met.
    """
    state = _run(case, pricing, shuffle, proved)
    if not unsettled(case, state):
        return state
    missed = priorities.missed(case, state)
    ranked = priorities.ranked(case, missed)
    if ranked is not None:
        preferred = _run(ranked, pricing, shuffle, proved)
        refresh(case, preferred)
        if is_closer(priorities.missed(case, preferred), missed):
            state, missed = preferred, priorities.missed(case, preferred)
    eased = within_reach(case, state)
    with _pricing(eased, shuffle, at_once=pricing.at_once) as easier:
        last = _run(eased, easier, shuffle, proved)
    refresh(case, last)
    reached = priorities.missed(case, last)
    if all(off <= before for off, before in zip(reached, missed, strict=True)):
        state, missed = last, reached
    return _worth(case, priorities, state, missed)


def _run(case: Case, pricing: Beside[Prices], shuffle: Ints, proved: Callable[[], object]) -> State:
    search = Search.of(case, shuffle)
    state, missing = search.repaired()
    proved()
    if missing:
        raise InfeasibleGoalsError(
            [
                f"{missing} replicas find no broker in a rack with room: add brokers in other "
                "racks, or exclude fewer"
            ]
        )
    search.improve(state, Guide.of(case, pricing.result()))
    return state


def _worth(case: Case, priorities: Priorities, state: State, missed: list[float]) -> State:
    """The state; or the start, if that lacks nothing but what hardly gets less.

    Else plans would follow each other forever where goals cannot be met.
    """
    start = start_state(case)
    if needs_repair(case, start) or is_closer(missed, priorities.missed(case, start)):
        return state
    return start


def _improved(case: Case, state: State, prices: Prices, least_moves: int) -> tuple[State, float]:
    """A state that costs less where the cluster is small, and what all at least cost, if proved.

    Only where all goals are met: else a later search could come closer than this one, and plans
    would follow each other.
    """
    if len(case.factor) * len(case.rack) > MAX_CHOICES or unsettled(case, state):
        return state, 0.0
    cost = spent(case, state)
    if cost == 0.0 or not _adds_up(case):
        return state, 0.0
    only_moves = bool((case.cost == 1.0).all())
    if only_moves and cost <= least_moves:
        return state, 0.0
    optimal = 1.0 if only_moves else _WORTHWHILE * cost
    if cost - max(0.0, dual_cost(case, case.cost, prices)) < optimal:
        return state, 0.0
    return improve(case, state)


def _adds_up(case: Case) -> bool:
    """Whether sums of loads are exact: else a state may seem to keep limits that it breaks."""
    replicas = (case.replica_loads * case.factor[:, None]).sum(axis=0)
    sums = np.append(replicas, case.leader_loads.sum(axis=0))
    return bool((sums < _EXACT).all())


def _bound(case: Case, shuffle: Ints, cost: Floats, prices: Prices | None) -> float:
    """What new replicas cost at least. Prices are found if none are given."""
    if prices is None:
        prices = find_prices(case, cost, shuffle)
    return max(0.0, dual_cost(case, cost, prices))


def case_of(
    snapshot: Snapshot, goals: Goals, problem: Problem, ordered: Sequence[Quantity]
) -> Case:
    """The case of a search. Pinned partitions lower the limits by what they bring.

    Args:
        ordered: First the quantities that every replica brings, then those of leaders.
    """
    borne = sum(not q.led for q in ordered)
    fixed = _fixed(snapshot, problem, ordered)
    rows = problem.movable
    home = _home(problem)
    totals = [int(q.each.sum()) * (1 if q.led else home.shape[1]) + 1 for q in ordered]

    def column(values: Sequence[Ints]) -> Floats:
        shape = (problem.brokers, len(ordered))
        columns = [
            np.clip(value, -total, total) for value, total in zip(values, totals, strict=True)
        ]
        return np.ascontiguousarray((np.array(columns).T.reshape(shape) - fixed).astype(np.float64))

    least, most = column([q.least for q in ordered]), column([q.most for q in ordered])
    amounts = [q.each[rows].astype(np.float64) for q in ordered]
    sums = np.array([max(1, int(q.each[rows].sum())) for q in ordered], dtype=np.float64)
    soft = np.array([float(bool(q.goal)) for q in ordered]) * len(rows) / sums
    # A leader that a broker lacks is one, however few leaders the topic has.
    soft[[bool(q.least_goal) for q in ordered]] = _HARD
    hard = _HARD * len(rows) / sums
    half = np.maximum((most - least) / 2, 1.0)
    two_sided = np.array([q.has_soft_limits for q in ordered], dtype=np.bool_)
    factors = np.zeros(len(snapshot.topics), dtype=np.int64)
    np.add.at(factors, snapshot.topic[rows], problem.factor)
    keeping = int(problem.keeps.sum())
    by_topic = goals.has(TOPIC_DISTRIBUTION)
    limits = [
        topic_limits(total, keeping, goals.topic_balance) if by_topic else (0, total)
        for total in factors.tolist()
    ]
    return Case(
        home=home,
        led_by=snapshot.leaders()[rows],
        factor=problem.factor,
        rack_limit=ints(problem.rack_limits()),
        keep_crowds=not problem.repairs_racks,
        least_racks=problem.least_racks(problem.kept_in_rack()),
        topic=ints(snapshot.topic[rows]),
        replica_loads=_stack(amounts[:borne], len(rows)),
        leader_loads=_stack(amounts[borne:], len(rows)),
        cost=_cost(goals.bytes_share, problem),
        rack=problem.rack,
        racks=problem.racks,
        keeps=problem.keeps,
        takes=problem.takes,
        least=least,
        most=most,
        capacity=column([q.capacity for q in ordered]),
        middle=(least + most) / 2,
        pull=np.where(two_sided & problem.takes[:, None], _PULL * soft / half, 0.0).astype(
            np.float64
        ),
        soft=soft,
        hard=hard,
        topic_least=ints([least for least, _ in limits]),
        topic_most=ints([most for _, most in limits]),
        by_topic=by_topic,
        topic_weight=1.0,
        topic_strict=True,
    )


def _stack(columns: Sequence[Floats], rows: int) -> Floats:
    return np.ascontiguousarray(np.array(columns, dtype=np.float64).reshape(len(columns), rows).T)


def _home(problem: Problem) -> Ints:
    """The present replicas, with room for as many as there will be."""
    width = int(max(np.diff(problem.offsets).max(initial=1), problem.factor.max(initial=1)))
    home = np.full((problem.partitions, width), -1, dtype=np.int64)
    home[owners(problem.offsets), positions(problem.offsets)] = problem.replicas
    return home


def _fixed(snapshot: Snapshot, problem: Problem, quantities: Sequence[Quantity]) -> Ints:
    """What pinned partitions bring to each broker."""
    pinned = np.ones(snapshot.partitions, dtype=np.bool_)
    pinned[problem.movable] = False
    of = owners(snapshot.offsets)
    held = np.flatnonzero(pinned[of])
    rows = np.flatnonzero(pinned)
    fixed = np.zeros((problem.brokers, len(quantities)), dtype=np.int64)
    for k, quantity in enumerate(quantities):
        if quantity.led:
            np.add.at(fixed[:, k], snapshot.leaders()[rows], quantity.each[rows])
        else:
            np.add.at(fixed[:, k], snapshot.replicas[held], quantity.each[of[held]])
    return fixed


def _mean(problem: Problem) -> float:
    """Bytes of the average new replica, 0 if there are none."""
    return int(problem.size.sum()) / max(1, problem.partitions)


def _cost(share: float, problem: Problem) -> Floats:
    """What a new replica of each row costs, 1 on average; ``share`` is that of bytes in it."""
    mean = _mean(problem)
    if mean == 0:
        return np.ones(problem.partitions)
    return np.asarray((1.0 - share) + share * problem.size / mean, dtype=np.float64)


def _placement(case: Case, state: State) -> Placement:
    """What leaves and what arrives."""
    same = state.replicas[:, :, None] == case.home[:, None, :]
    row, slot = np.nonzero((state.replicas >= 0) & ~same.any(axis=2))
    broker = state.replicas[row, slot]
    order = np.lexsort((broker, row))
    return Placement((~same.any(axis=1))[case.home >= 0], row[order], broker[order])


def within_reach(case: Case, state: State) -> Case:
    """The case with limits as wide as a state needs them."""
    if case.by_topic:
        count = state.topic_count.astype(np.int64)
        fewest = count[:, case.takes].min(axis=1, initial=NO_LIMIT)
        case = case._replace(
            topic_least=np.minimum(case.topic_least, fewest),
            topic_most=np.maximum(case.topic_most, count[:, case.keeps].max(axis=1, initial=0)),
        )
    return case._replace(
        least=np.minimum(case.least, state.load),
        most=np.maximum(case.most, state.load),
        capacity=np.maximum(case.capacity, state.load),
    )
