"""Plans of small clusters are the best there are: compared with another solver's model."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from benchmarks.plan_cases import Case, cases
from benchmarks.plan_optimum import optimum_of
from regent_rebalance.planner import make_plan
from regent_rebalance.replicas import SEARCH
from tests.unit.planner.weighted_clusters import planned


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(st.data())
def test_a_weighted_plan_that_meets_all_goals_has_the_fewest_moves(data: st.DataObject) -> None:
    snapshot, goals, plan = planned(data, brokers=5, partitions=8)
    assume(goals.bytes_share == 0.0 and plan.summary.goals_met)
    best = optimum_of(snapshot, goals, timeout_s=60)
    assert best.proved
    assert plan.summary.bounds.moves == plan.summary.moves == best.moves


QUICK = [case for case in cases() if case.name not in ("pinned and weighted", "256 shards")]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_plans_of_published_clusters_are_the_best(case: Case) -> None:
    summary = make_plan(case.snapshot, case.goals).summary
    best = optimum_of(case.snapshot, case.goals, timeout_s=60)
    assert best.proved
    if best.moves is None:
        assert not summary.goals_met
    else:
        assert summary.goals_met
        assert summary.moves == best.moves
    assert summary.bounds.moves <= summary.moves


def test_a_plan_that_others_need_long_for_is_near_its_bound() -> None:
    (case,) = (case for case in cases() if case.name == "256 shards")
    summary = make_plan(case.snapshot, case.goals).summary
    assert summary.method == SEARCH
    assert summary.goals_met
    assert summary.gap < 0.1
