"""Plans of small clusters are the best there are: compared with another solver's model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.plan_cases import Case as Published
from benchmarks.plan_cases import cases
from benchmarks.plan_optimum import optimum_of
from regent_rebalance import weighted
from regent_rebalance.case import Case, State
from regent_rebalance.goals import (
    DISK_CAPACITY,
    DISK_DISTRIBUTION,
    NETWORK_OUT_DISTRIBUTION,
    RACK,
    Goals,
)
from regent_rebalance.integer_program import Improved, improve
from regent_rebalance.planner import make_plan
from regent_rebalance.problem import problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.replicas import SEARCH
from regent_rebalance.search import spent, start_state
from regent_rebalance.snapshot import Snapshot
from regent_rebalance.weighted import case_of
from tests.support.soak import soak
from tests.unit.planner.clusters import cluster, patient
from tests.unit.planner.weighted_clusters import loaded, planned


@patient
@given(st.data())
def test_a_weighted_plan_that_meets_all_goals_has_the_fewest_moves(data: st.DataObject) -> None:
    snapshot, goals, plan = planned(data, bytes_shares=(0.0,), brokers=5, partitions=8)
    assume(plan.summary.goals_met)
    best = optimum_of(snapshot, goals, timeout_s=60)
    assert best.proved
    assert plan.summary.bounds.moves == plan.summary.moves == best.moves


@pytest.mark.parametrize(
    "name",
    [
        "rack repair",
        "racks too few",
        "three brokers",
        "one broker of 20 leaves",
        pytest.param("weighted", marks=soak("planner")),
        pytest.param("leaders of 256", marks=soak("planner")),
    ],
)
def test_plans_of_published_clusters_are_the_best(name: str) -> None:
    case = published(name)
    summary = make_plan(case.snapshot, case.goals).summary
    best = optimum_of(case.snapshot, case.goals, timeout_s=60)
    assert best.proved
    if best.moves is None:
        assert not summary.goals_met
    else:
        assert summary.goals_met
        assert summary.moves == best.moves
    assert summary.bounds.moves <= summary.moves


@soak("planner")
def test_a_plan_that_others_need_long_for_is_near_its_bound() -> None:
    case = published("256 shards")
    summary = make_plan(case.snapshot, case.goals).summary
    assert summary.method == SEARCH
    assert summary.goals_met
    assert summary.gap < 0.1


def published(name: str) -> Published:
    return next(case for case in cases() if case.name == name)


def moved(snapshot: Snapshot, goals: Goals, lists: list[list[int]]) -> tuple[Case, State]:
    """The case of a snapshot, and the state in which partitions have these brokers instead."""
    problem = problem_of(snapshot, goals)
    case = case_of(snapshot, goals, problem, quantities_of(snapshot, goals, problem))
    replicas = snapshot.brokers.positions_of(np.array(lists).reshape(-1), what="brokers")
    home = replicas.reshape(case.home.shape)
    return case, start_state(case._replace(home=home, led_by=home[:, 0].copy()))


def test_many_costs_rounded_down_are_no_gain() -> None:
    """One partition costs 1, the eleven that could move instead 1.0009: 0.99 if rounded."""
    sizes = [100_000, *[9_099] * 11, 1_099_911]
    snapshot = loaded(
        cluster(["a", "a"], [[1]] * 12 + [[2]], sizes=sizes), disk=[100_089, 10_000_000]
    )
    goals = Goals(names=(DISK_CAPACITY,), capacity_threshold=1.0, bytes_share=1.0)
    case, state = moved(snapshot, goals, [[2], *[[1]] * 11, [2]])
    found = improve(case, state)
    assert spent(case, found.state) == spent(case, state) == 1.0
    assert found.bound <= 1.0


def test_no_replica_moves_in_vain_because_it_is_empty() -> None:
    """One of three partitions has to move, and the solver is given a state in which all do."""
    snapshot = loaded(
        cluster(["a"] * 3, [[1, 2]] * 5, sizes=[100, 0, 0, 0, 100]), disk=[100, 1000, 1000]
    )
    goals = Goals(names=(DISK_CAPACITY,), capacity_threshold=1.0, bytes_share=1.0)
    case, state = moved(snapshot, goals, [[3, 2], [1, 3], [1, 3], [1, 3], [3, 2]])
    found = improve(case, state)
    new = found.state.replicas != case.home
    assert new.any(axis=1).sum() == 1
    assert found.bound == pytest.approx(spent(case, found.state), abs=0.01)


@pytest.mark.parametrize(("size", "asked"), [(1 << 49, 1), (1 << 52, 0)])
def test_loads_that_floats_do_not_add_up_are_left_to_the_search(
    size: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sums are rounded, limits may seem kept that are not, and the solver finds no state."""
    calls = []

    def counted(case: Case, state: State) -> Improved:
        calls.append(case)
        return improve(case, state)

    monkeypatch.setattr(weighted, "improve", counted)
    snapshot = loaded(
        cluster(["a"] * 6, [[1], [1], [2], [2], [3], [3]], sizes=[size] * 6), disk=[10 * size] * 6
    )
    goals = Goals(names=(DISK_CAPACITY, DISK_DISTRIBUTION), resource_balance=1.5)
    plan = make_plan(snapshot, goals)
    assert (plan.summary.goals_met, plan.summary.moves) == (True, 3)
    assert len(calls) == asked


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_solver_is_not_asked_where_nothing_moves(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted, "improve", lambda *_: pytest.fail("asked in vain"))
    snapshot = cluster(["a"] * 3, [[1], [2], [3]], sizes=[10, 11, 12])
    plan = make_plan(snapshot, Goals(names=(DISK_DISTRIBUTION,), bytes_share=share))
    assert (plan.summary.goals_met, plan.summary.moves) == (True, 0)


def test_the_solver_is_not_asked_where_networks_have_proved_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All four partitions share a rack. Prices know nothing of that where only leaders count."""
    monkeypatch.setattr(weighted, "improve", lambda *_: pytest.fail("asked in vain"))
    snapshot = loaded(cluster(["a", "a", "b"], [[1, 2]] * 4), bytes_out=[10] * 4)
    goals = Goals(names=(RACK, NETWORK_OUT_DISTRIBUTION), resource_balance=2.0)
    plan = make_plan(snapshot, goals)
    assert (plan.summary.goals_met, plan.summary.moves) == (True, 4)
