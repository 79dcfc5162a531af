"""Prices of the lower bound: the smooth bound, its derivatives, and the steps that climb it."""

from __future__ import annotations

import numpy as np
import pytest

from regent_rebalance.case import Case, Floats
from regent_rebalance.dual_rows import Rows, rows_of, scratch
from regent_rebalance.goals import ALL_GOALS, REPLICA_DISTRIBUTION, TOPIC_DISTRIBUTION, Goals
from regent_rebalance.newton import Step, find_step
from regent_rebalance.planner import make_plan
from regent_rebalance.prices import Prices, dual_cost, find_prices
from regent_rebalance.problem import problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.ragged import Ints
from regent_rebalance.replicas import shuffled
from regent_rebalance.smooth_bound import Slopes, Targets, slope_along, smooth_bound
from regent_rebalance.tolls import find_tolls
from regent_rebalance.weighted import case_of
from tests.unit.planner.clusters import cluster
from tests.unit.planner.test_weighted import uneven

SHAPE = BROKERS, GROUPS, KINDS = 9, 3, 3


def uneven_case(partitions: int, *, crowded: bool) -> Case:
    """Loads that differ much; some partitions have replicas in one rack, or none has."""
    snapshot = uneven(partitions)
    goals = Goals(names=ALL_GOALS, bytes_share=0.5)
    problem = problem_of(snapshot, goals)
    quantities = quantities_of(snapshot, goals, problem)
    ordered = [q for q in quantities if not q.led] + [q for q in quantities if q.led]
    case = case_of(snapshot, goals, problem, ordered)
    return case if crowded else case._replace(rack=np.arange(BROKERS), racks=BROKERS)


class Bound:
    """The smooth bound of a case, loads by their means."""

    def __init__(self, case: Case, smooth: float) -> None:
        self.unit = case.replica_loads.mean(axis=0)
        rows = rows_of(case, case.cost)
        self.rows: Rows = rows._replace(amount=rows.amount / self.unit)
        load = np.zeros((BROKERS, KINDS))
        for slot in range(case.home.shape[1]):
            np.add.at(load, case.home[:, slot], case.replica_loads)
        upper = np.minimum(case.most, case.capacity)[:, :KINDS]
        self.limits = np.array([load, case.least[:, :KINDS], upper]) / self.unit
        self.group: Ints = np.arange(BROKERS) % GROUPS
        self.smooth = smooth

    def at(self, floor: Floats, extra: Floats) -> tuple[float, Slopes]:
        slopes = Slopes.empty(*SHAPE)
        given = self.rows, self.limits, self.group, floor, extra, self.smooth
        room = Targets.empty(GROUPS), *scratch(self.rows)
        return smooth_bound(*given, slopes, *room), slopes


def some_prices(seed: int) -> tuple[Floats, Floats]:
    """Floors and extras of the size that good ones have."""
    generator = np.random.default_rng(seed)
    return (
        generator.normal(0, 0.05, (GROUPS, KINDS)),
        np.maximum(0, generator.normal(0, 0.5, (BROKERS, KINDS))),
    )


@pytest.mark.parametrize("crowded", [False, True], ids=["free", "crowded"])
@pytest.mark.parametrize("smooth", [0.1, 0.01])
def test_slopes_are_those_of_the_smooth_bound(smooth: float, *, crowded: bool) -> None:
    bound = Bound(uneven_case(120, crowded=crowded), smooth)
    floor, extra = some_prices(1)
    _, slopes = bound.at(floor, extra)
    generator = np.random.default_rng(2)
    for _ in range(10):
        way = generator.normal(0, 1e-6, floor.shape), generator.normal(0, 1e-6, extra.shape)
        rise = (
            bound.at(floor + way[0], extra + way[1])[0]
            - bound.at(floor - way[0], extra - way[1])[0]
        )
        assert slope_along(bound.group, slopes, *way) == pytest.approx(rise / 2, rel=2e-2, abs=1e-7)


def test_curvatures_are_those_of_the_smooth_bound_where_racks_leave_the_choice() -> None:
    bound = Bound(uneven_case(120, crowded=False), 0.1)
    floor, extra = some_prices(1)
    slopes = bound.at(floor, extra)[1]
    small = 1e-6
    for broker, kind in ((0, 0), (4, 1), (8, 2)):
        more = extra.copy()
        more[broker, kind] += small
        after = bound.at(floor, more)[1]
        fallen = (slopes.of_broker - after.of_broker)[broker] / small
        assert fallen == pytest.approx(slopes.within[broker, kind], rel=1e-2, abs=1e-2)
        to_floors = (slopes.of_group - after.of_group) / small
        assert to_floors == pytest.approx(slopes.mixed[broker, :, kind], rel=1e-2, abs=1e-2)


@pytest.mark.parametrize("crowded", [False, True], ids=["free", "crowded"])
def test_the_smooth_bound_is_below_the_bound_and_comes_close(*, crowded: bool) -> None:
    case = uneven_case(200, crowded=crowded)
    floor, extra = some_prices(3)
    for smooth, near in ((0.1, np.inf), (1e-7, 1e-2)):
        bound = Bound(case, smooth)
        prices = Prices(bound.group, floor / bound.unit, extra / bound.unit)
        exact = dual_cost(case, case.cost, prices)
        assert 0 <= exact - bound.at(floor, extra)[0] + 1e-3 <= near


def test_what_a_broker_has_too_much_of_a_topic_is_in_the_bound() -> None:
    """All brokers have five replicas, but the first has five of topic t0, and three are allowed."""
    lists = [[1]] * 5 + [[2], [3], [4]] * 4 + [[broker] for broker in (2, 3, 4, 5, 6, 7)]
    lists += [[broker] for broker in range(2, 8) for _ in range(4)]
    half = (len(lists) + 1) // 2
    lists = lists[:5] + lists[-(half - 5) :] + lists[5 : len(lists) - (half - 5)]
    plan = make_plan(
        cluster(list("abcdefg"), lists),
        Goals(names=(REPLICA_DISTRIBUTION, TOPIC_DISTRIBUTION), topic_balance=1.0),
    )
    assert plan.summary.goals_met
    assert 0 < plan.summary.bounds.dual == plan.summary.moves


def test_a_toll_lets_as_many_stay_as_may() -> None:
    case = uneven_case(200, crowded=False)
    case = case._replace(topic_most=case.topic_most // 3)
    rows, (floor, extra) = rows_of(case, case.cost), some_prices(6)
    unit, group = case.replica_loads.mean(axis=0), np.arange(BROKERS) % GROUPS
    floor, extra = floor / unit, extra / unit
    tolls = find_tolls(case, rows, group, floor, extra)
    target = (case.replica_loads @ floor.T).min(axis=1)
    stay = ((floor[group] + extra)[case.home] * case.replica_loads[:, None, :]).sum(axis=2)
    loss = case.cost[:, None] + target[:, None] - stay
    choosy = 0
    for topic, most in enumerate(case.topic_most.tolist()):
        for broker in range(BROKERS):
            here = (case.topic[:, None] == topic) & (case.home == broker)
            toll = np.unique(tolls.each[here])
            assert len(toll) <= 1
            if here.sum() <= most:
                assert not toll.any()
                continue
            # Those that lose more than the toll by leaving stay; the grain may leave one undecided.
            would = (loss[here] > toll[0] + 1e-5).sum()
            assert would <= most
            choosy += int(toll[0] > 0)
            assert toll[0] == 0 or (loss[here] > toll[0] - 1e-5).sum() > most
    assert choosy > 0
    assert tolls.back.sum() > 0


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_a_step_solves_the_system_of_all_prices(damping: float) -> None:
    """Brokers are eliminated one by one; here the whole system is solved at once."""
    bound = Bound(uneven_case(150, crowded=True), 0.1)
    floor, extra = some_prices(4)
    slopes = bound.at(floor, extra)[1]
    fixed = extra == 0.0
    step = Step.empty(*SHAPE)
    find_step(bound.group, slopes, fixed, damping, step)
    floors, size = GROUPS * KINDS, (GROUPS + BROKERS) * KINDS
    system, right = np.zeros((size, size)), np.zeros(size)
    # What brokers pay is their floor and their extra: both have a part in all curvatures of it.
    parts = np.zeros((size, BROKERS * KINDS))
    for b in range(BROKERS):
        for k in range(KINDS):
            parts[bound.group[b] * KINDS + k, b * KINDS + k] = 1
            parts[floors + b * KINDS + k, b * KINDS + k] = 1
    inner = np.zeros((BROKERS * KINDS, BROKERS * KINDS))
    meets = np.zeros((BROKERS * KINDS, floors))
    for b in range(BROKERS):
        rows = slice(b * KINDS, (b + 1) * KINDS)
        inner[rows, rows] = slopes.within[b]
        meets[rows] = slopes.mixed[b].transpose(1, 0, 2).reshape(KINDS, floors)
    system += parts @ inner @ parts.T
    system[:, :floors] += parts @ meets
    system[:floors] += (parts @ meets).T
    system[:floors, :floors] += slopes.between.transpose(0, 2, 1, 3).reshape(floors, floors)
    right += parts @ slopes.of_broker.reshape(-1)
    right[:floors] += slopes.of_group.reshape(-1)
    mean = np.mean([slopes.within[b, k, k] for b in range(BROKERS) for k in range(KINDS)])
    even = 1e-6 + damping * mean
    weight = np.concatenate([np.full(floors, BROKERS / GROUPS), np.ones(BROKERS * KINDS)])
    system += np.diag(damping * np.diag(system) + even * weight)
    chosen = np.concatenate([np.ones(floors, dtype=np.bool_), ~fixed.reshape(-1)])
    solution = np.zeros(size)
    solution[chosen] = np.linalg.solve(system[np.ix_(chosen, chosen)], right[chosen])
    found = np.concatenate([step.floor.reshape(-1), step.extra.reshape(-1)])
    assert found == pytest.approx(solution, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("crowded", [False, True], ids=["free", "crowded"])
def test_no_prices_nearby_have_a_better_bound(*, crowded: bool) -> None:
    case = uneven_case(600, crowded=crowded)
    prices = find_prices(case, case.cost, shuffled(600))
    best = dual_cost(case, case.cost, prices)
    assert best > 0
    generator, unit = np.random.default_rng(5), case.replica_loads.mean(axis=0)
    for size in (0.1, 0.01, 0.001):
        for _ in range(100):
            floor = prices.floor + generator.normal(0, size, prices.floor.shape) / unit
            extra = prices.extra + generator.normal(0, size, prices.extra.shape) / unit
            other = Prices(prices.group, floor, np.maximum(0, extra))
            assert dual_cost(case, case.cost, other) < 1.002 * best
