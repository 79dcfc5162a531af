"""A plan is held against its task: it may have come from somebody else than the planner."""

from __future__ import annotations

import pytest

from regent.planning.goals import PlannerGoals
from regent.planning.results import (
    InfeasibleGoals,
    PlannedChange,
    PlannedChanges,
    PlannerFailed,
)
from regent.planning.verification import verified

GOALS = PlannerGoals(drained=(4,), excluded=(5,), pinned=("payments", "audit"))
FOREIGN = "secret"
GOOD = PlannedChange("orders", 0, (1, 2), (2, 3))


def may_move(topic: str) -> bool:
    return topic != FOREIGN


def test_a_plan_within_its_task_is_taken() -> None:
    kept = PlannedChange("orders", 1, (5, 4), (5, 1))
    plan = PlannedChanges((GOOD, kept), bytes=7)
    assert verified(plan, GOALS, may_move) is plan


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (PlannedChange("payments", 0, (1, 2), (2, 1)), "moves payments-0, a topic that is to stay"),
        (
            PlannedChange(FOREIGN, 0, (1, 2), (2, 1)),
            "moves secret-0, a topic that topic_name_rules",
        ),
        (
            PlannedChange(FOREIGN, 0, (1, 2), (1, 2)),
            "moves secret-0, a topic that topic_name_rules",
        ),
        (PlannedChange("orders", 1, (1, 2), (1, 4)), "leaves a replica of orders-1 on broker 4"),
        (PlannedChange("orders", 1, (1, 4), (4, 1)), "leaves a replica of orders-1 on broker 4"),
        (PlannedChange("orders", 1, (1, 2), (1, 5)), "puts a replica of orders-1 on broker 5"),
        (PlannedChange("orders", 1, (1, 2), (1,)), "gives orders-1 1 replicas in the place of 2"),
        (PlannedChange("orders", 1, (1,), (1, 2)), "gives orders-1 2 replicas in the place of 1"),
        (PlannedChange("orders", 1, (1, 2), (3, 3)), "has a broker twice for orders-1"),
        (PlannedChange("orders", 0, (1, 2), (1, 3)), "has orders-0 twice"),
    ],
)
def test_one_that_is_not_is_no_plan(change: PlannedChange, problem: str) -> None:
    result = verified(PlannedChanges((GOOD, change)), GOALS, may_move)
    assert isinstance(result, PlannerFailed)
    assert result.problem.startswith(f"its plan {problem}")


def test_other_answers_are_left_alone() -> None:
    answer = InfeasibleGoals(("no",))
    assert verified(answer, GOALS, may_move) is answer
