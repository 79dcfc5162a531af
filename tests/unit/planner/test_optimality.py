"""Plans are optimal, and bounds are bounds: compared with every placement of small clusters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from regent_rebalance.bounds import bounds_of
from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.certificate import dual_bound
from regent_rebalance.errors import InfeasibleGoalsError
from regent_rebalance.goals import REPLICA_DISTRIBUTION, Goals
from regent_rebalance.leadership import plan_leaders
from regent_rebalance.problem import Problem, problem_of
from regent_rebalance.ragged import offsets_of
from regent_rebalance.replicas import FULL, plan_replicas
from tests.unit.planner.clusters import cluster, clusters, goals_for, optimum, patient


@st.composite
def problems(draw: st.DrawFn, *, partitions: int) -> Problem:
    """A small problem that is not refused."""
    snapshot = draw(clusters(brokers=6, partitions=partitions))
    goals = draw(goals_for(snapshot))
    try:
        return problem_of(snapshot, goals)
    except InfeasibleGoalsError:
        reject()


@patient
@given(problems(partitions=5))
def test_a_plan_costs_what_the_best_placement_costs(problem: Problem) -> None:
    chosen = plan_replicas(problem)
    best = optimum(problem)
    assert chosen.cost == chosen.placement.cost(problem) == best
    assert chosen.bound <= best


@patient
@given(st.data())
def test_no_bound_exceeds_the_best_placement(data: st.DataObject) -> None:
    problem = data.draw(problems(partitions=5))
    chosen = plan_replicas(problem)
    bounds = bounds_of(problem, chosen.bound, planned=chosen.placement.loads(problem))
    copies = np.bincount(chosen.placement.partition, minlength=problem.partitions)
    assert bounds.moves <= len(chosen.placement.broker)
    assert bounds.bytes <= int((copies * problem.size).sum())
    prices = np.array(
        data.draw(st.lists(st.integers(-9, 9), min_size=problem.brokers, max_size=problem.brokers))
    )
    assert dual_bound(problem, prices) <= optimum(problem)


@patient
@given(st.data())
def test_leaders_change_as_little_as_the_best_choice(data: st.DataObject) -> None:
    brokers = data.draw(st.integers(1, 4))
    lists = data.draw(
        st.lists(
            st.permutations(range(brokers)).flatmap(
                lambda order: st.integers(1, brokers).map(lambda n: list(order[:n]))
            ),
            min_size=1,
            max_size=6,
        )
    )
    present = np.array([data.draw(st.integers(-1, len(replicas) - 1)) for replicas in lists])
    least, most = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 4))
    costs = BrokerCosts.of(*(np.full(brokers, n) for n in (least, most, len(lists))))
    fixed = np.array([data.draw(st.booleans()) for _ in lists])
    offsets = offsets_of(np.array([len(replicas) for replicas in lists]))
    plan = plan_leaders(
        offsets,
        np.array([b for replicas in lists for b in replicas]),
        present,
        costs,
        fixed=fixed,
        share=data.draw(st.integers(0, 2)),
    )

    def cost(choice: tuple[int, ...]) -> int:
        leaders = [replicas[slot] for replicas, slot in zip(lists, choice, strict=True)]
        changed = sum(
            slot != was and was >= 0 for slot, was in zip(choice, present.tolist(), strict=True)
        )
        return int(changed) + costs.penalty(np.bincount(leaders, minlength=brokers))

    choices = itertools.product(
        *(
            [was] if stays and was >= 0 else range(len(replicas))
            for replicas, was, stays in zip(lists, present.tolist(), fixed.tolist(), strict=True)
        )
    )
    assert plan.bound <= min(map(cost, choices)) == plan.cost == cost(tuple(plan.leader.tolist()))


def test_what_classes_cannot_prove_the_full_network_does() -> None:
    """Three replicas of a partition must move at once, and a class moves one."""
    snapshot = cluster(["a", "b", "c", "d", "e", "f"], [[1, 2, 3]] * 2)
    goals = Goals(names=(REPLICA_DISTRIBUTION,), replica_balance=1.0)
    chosen = plan_replicas(problem_of(snapshot, goals))
    assert (chosen.method, chosen.cost, chosen.bound) == (FULL, 3, 3)


def test_a_network_too_large_leaves_an_honest_gap() -> None:
    snapshot = cluster(["a", "b", "c", "d", "e", "f"], [[1, 2, 3]] * 2)
    problem = problem_of(snapshot, Goals(names=(REPLICA_DISTRIBUTION,), replica_balance=1.0))
    chosen = plan_replicas(problem, max_arcs=0)
    assert chosen.cost > chosen.bound
    assert chosen.cost == chosen.placement.cost(problem)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0, 8], ids=["all choose", "some choose"])
def test_leaders_of_many_partitions_are_proved_optimal(seed: int, share: int) -> None:
    generator = np.random.default_rng(seed)
    brokers, partitions = 9, 600
    # Brokers with high numbers lead most; some partitions have no leader, some must keep theirs.
    lists = [
        sorted(generator.choice(brokers, size=3, replace=False).tolist(), reverse=True)
        for _ in range(partitions)
    ]
    present = np.where(generator.random(partitions) < 0.05, -1, 0)
    limits = BrokerCosts.of(*(np.full(brokers, n) for n in (66, 67, partitions)))
    plan = plan_leaders(
        offsets_of(np.full(partitions, 3)),
        np.array(lists).reshape(-1),
        present,
        limits,
        fixed=generator.random(partitions) < 0.05,
        share=share,
    )
    assert plan.bound == plan.cost > 0
