"""The order of soft goals: where not all can be met, the first named is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from regent_rebalance.errors import InfeasibleGoalsError, InvalidInputError
from regent_rebalance.goals import (
    DEFAULT_GOALS,
    DISK_DISTRIBUTION,
    LEADER_DISTRIBUTION,
    RACK,
    REPLICA_DISTRIBUTION,
    TOPIC_DISTRIBUTION,
    Goals,
)
from regent_rebalance.plan import Plan
from regent_rebalance.planner import make_plan
from regent_rebalance.priorities import is_closer
from regent_rebalance.problem import problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.snapshot import Snapshot
from tests.unit.planner.clusters import cluster, clusters, executed, legal_sets, patient


def missed(plan: Plan) -> list[str]:
    return [goal.name for goal in plan.summary.goals if not goal.met]


REPLICAS_OR_DISK = cluster(["a", "a"], [[1]] * 4, sizes=[3, 1, 1, 1])
"""Two replicas on each broker, or three bytes."""


@pytest.mark.parametrize("reverse", [False, True])
def test_of_two_goals_in_conflict_the_first_named_is_met(reverse: bool) -> None:
    names = (REPLICA_DISTRIBUTION, DISK_DISTRIBUTION)
    order = names[::-1] if reverse else names
    goals = Goals(names=order, replica_balance=1.0, resource_balance=1.0)
    plan = make_plan(REPLICAS_OR_DISK, goals)
    assert missed(plan) == [order[1]]
    assert [goal.name for goal in plan.summary.goals] == list(order)
    assert len(make_plan(executed(REPLICAS_OR_DISK, plan), goals).changes) == 0


def test_the_order_of_topics_counts_too() -> None:
    """Of topic t0 one partition has half of the bytes: alone on its broker, or t0 evenly."""
    snapshot = cluster(["a", "a"], [[1]] * 9 + [[2]] * 8, sizes=[8, *[1] * 8, *[0] * 8])
    names = (TOPIC_DISTRIBUTION, DISK_DISTRIBUTION)
    for order in (names, names[::-1]):
        goals = Goals(names=order, topic_balance=1.0, resource_balance=1.0)
        assert missed(make_plan(snapshot, goals)) == [order[1]]


def test_what_is_out_of_reach_costs_no_later_goal_that_can_be_met() -> None:
    """One partition has most bytes: disks cannot be even. Numbers of replicas can."""
    snapshot = cluster(["a", "a"], [[1]] * 4, sizes=[100, 1, 1, 1])
    goals = Goals(
        names=(DISK_DISTRIBUTION, REPLICA_DISTRIBUTION), replica_balance=1.5, resource_balance=1.0
    )
    assert missed(make_plan(snapshot, goals)) == [DISK_DISTRIBUTION]


def test_replicas_move_for_leaders_where_leaders_alone_cannot() -> None:
    """Broker 1 leads three partitions that nobody else has; all brokers have three replicas."""
    snapshot = cluster(["a"] * 3, [[1]] * 3 + [[2, 3]] * 3)
    goals = Goals(replica_balance=1.0, leader_balance=1.0)
    plan = make_plan(snapshot, goals)
    assert (missed(plan), plan.summary.moves, plan.summary.method) == ([], 2, "search")
    assert len(make_plan(executed(snapshot, plan), goals).changes) == 0


def test_an_exact_plan_stays_where_a_search_meets_no_goal_more() -> None:
    snapshot = cluster(["a", "a"], [[1], [2], [1, 2]], sizes=[1, 1, 1])
    goals = Goals(names=DEFAULT_GOALS, leader_balance=1.0, excluded=(2,))
    plan = make_plan(snapshot, goals)
    assert plan.summary.method != "search"


def test_nobody_says_that_leaders_allow_no_better_where_a_search_only_found_nothing() -> None:
    """Two moves would meet all goals."""
    snapshot = cluster(["a", "a", "b"], [[1, 3]] * 3 + [[2]] * 3, leaders=[1, 1, 3, 2, 2, 2])
    goals = Goals(replica_balance=1.0, leader_balance=1.0)
    for goal in make_plan(snapshot, goals).summary.goals:
        assert "allow no better" not in goal.reason


def test_a_goal_is_named_once() -> None:
    with pytest.raises(InvalidInputError, match="LeaderReplicaDistributionGoal is named twice"):
        Goals(names=(LEADER_DISTRIBUTION, LEADER_DISTRIBUTION))


def test_the_first_clear_difference_decides() -> None:
    assert is_closer([0, 1, 9], [0, 2, 0])
    assert not is_closer([0, 2, 0], [0, 1, 9])
    assert is_closer([0, 1.95, 0], [0, 2, 1])
    assert not is_closer([0, 2], [0, 2])


def attainable(snapshot: Snapshot, goals: Goals) -> set[tuple[bool, ...]]:
    """Which soft goals, in their order, each placement meets that is allowed: all are tried."""
    problem = problem_of(snapshot, goals)
    limits = {quantity.goal: quantity for quantity in quantities_of(snapshot, goals, problem)}
    ordered = [limits[name] for name in goals.soft]
    found = set()
    for choice in itertools.product(*(legal_sets(problem, r) for r in range(problem.partitions))):
        loads = np.zeros((len(ordered), problem.brokers), dtype=np.int64)
        for row, (_, brokers) in enumerate(choice):
            for k, quantity in enumerate(ordered):
                loads[k, list(brokers)] += quantity.each[problem.movable[row]]
        found.add(
            tuple(
                bool(((load >= q.least) & (load <= q.most)).all())
                for load, q in zip(loads, ordered, strict=True)
            )
        )
    return found


@patient
@given(st.data())
def test_the_first_goal_is_met_if_any_plan_meets_it_and_all_if_any_meets_all(
    data: st.DataObject,
) -> None:
    snapshot = data.draw(clusters(brokers=4, partitions=4))
    order = data.draw(st.permutations([REPLICA_DISTRIBUTION, DISK_DISTRIBUTION]))
    goals = Goals(
        names=(RACK, *order),
        replica_balance=data.draw(st.sampled_from([1.0, 1.2, 1.5])),
        resource_balance=data.draw(st.sampled_from([1.1, 1.3, 1.6])),
    )
    try:
        plan = make_plan(snapshot, goals)
    except InfeasibleGoalsError:
        reject()
    possible, left = attainable(snapshot, goals), missed(plan)
    if any(first for first, _ in possible):
        assert order[0] not in left
    if (True, True) in possible:
        assert left == []
