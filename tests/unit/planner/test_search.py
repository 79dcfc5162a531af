"""Passes of the search, each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from regent_rebalance.case import Case, State
from regent_rebalance.goals import DISK_DISTRIBUTION, Goals
from regent_rebalance.kernel import place
from regent_rebalance.passes import substitute
from regent_rebalance.problem import problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.search import start_state
from regent_rebalance.weighted import case_of
from tests.unit.planner.clusters import cluster


def lopsided(*, bytes_share: float) -> tuple[Case, State]:
    """The first broker has 2, 6 and 10 bytes, the second has 6: each is to have 12."""
    snapshot = cluster(["a", "a"], [[1], [1], [1], [2]], sizes=[2, 6, 10, 6])
    goals = Goals(names=(DISK_DISTRIBUTION,), resource_balance=1.0, bytes_share=bytes_share)
    problem = problem_of(snapshot, goals)
    case = case_of(snapshot, goals, problem, quantities_of(snapshot, goals, problem))
    return case, start_state(case)


@pytest.mark.parametrize(
    ("bytes_share", "moved", "loads"),
    [(0.0, [False, True, False, False], [12, 12]), (1.0, [True, False, False, False], [16, 8])],
)
def test_a_better_replica_moves_instead_of_another_if_it_costs_no_more(
    bytes_share: float, moved: list[bool], loads: list[int]
) -> None:
    case, state = lopsided(bytes_share=bytes_share)
    place(case, state, 0, 0, 1)
    at_home, begins = np.arange(4), np.array([0, 3, 4])
    made = substitute(case, state, np.array([0]), begins, at_home, 8, 0)
    assert made == (bytes_share == 0.0)
    assert (state.replicas[:, 0] != case.home[:, 0]).tolist() == moved
    assert state.load[:, 0].tolist() == loads
