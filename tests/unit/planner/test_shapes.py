"""The clusters that plans are measured on, and plans for one of them."""

from __future__ import annotations

import pytest

from benchmarks.plan_one import KINDS
from benchmarks.plan_shapes import SHAPES, Shape, generate
from regent_rebalance.goals import Goals
from regent_rebalance.planner import make_plan
from tests.support.soak import soak


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.name[0] == "A"], ids=lambda s: s.name)
def test_plans_for_the_small_shapes_are_proved_optimal(shape: Shape) -> None:
    """Generating compares the placement's CRC-32 with the published one."""
    summary = make_plan(generate(shape), Goals()).summary
    moves = {
        "A uniform": 2_863,
        "A linear": 10_747,
        "A exponential": 10_725,
        "A rack-aware": 811,
        "A 4 new": 4_355,
        "A 2 dead": 2_729,
        "A heavy": 811,
    }
    assert (summary.moves, summary.gap, summary.method) == (moves[shape.name], 0, "classes")
    assert summary.leader_changes == summary.leader_changes_bound
    assert summary.goals_met


@pytest.mark.parametrize(
    "name",
    [
        "A 2 dead",
        pytest.param("A uniform", marks=soak("planner")),
        pytest.param("A rack-aware", marks=soak("planner")),
        pytest.param("A 4 new", marks=soak("planner")),
    ],
)
def test_weighted_plans_for_the_small_shapes_meet_all_goals(name: str) -> None:
    shape = next(shape for shape in SHAPES if shape.name == name)
    summary = make_plan(generate(shape), KINDS["moves"]).summary
    assert [goal.name for goal in summary.goals if not goal.met] == []
    assert summary.gap < 0.01


def test_few_bytes_are_copied_where_few_topics_have_most() -> None:
    shape = next(shape for shape in SHAPES if shape.name == "A heavy")
    summary = make_plan(generate(shape), KINDS["bytes"]).summary
    assert [goal.name for goal in summary.goals if not goal.met] == []
    assert summary.gap < 0.02


def test_a_plan_does_not_change_with_the_machine() -> None:
    assert make_plan(generate(SHAPES[0]), Goals()).hash == (
        "sha256:173fbe85e3dea7f9d19c1e4d3a31a42307707f7e31551a0b9c3c24a2ae4ab74f"
    )
