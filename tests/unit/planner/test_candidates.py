"""Several plans of one snapshot, and which is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from regent_rebalance.candidates import Answer, best_of, make_answer
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.files import save_snapshot
from tests.unit.planner.clusters import cluster

SNAPSHOT = cluster(["a", "b", "c"], [[1, 2]] * 6, sizes=[10, 20, 30, 40, 50, 60])


@pytest.fixture
def snapshot(tmp_path: Path) -> bytes:
    file = tmp_path / "snapshot.json"
    save_snapshot(SNAPSHOT, file)
    return file.read_bytes()


def test_a_snapshot_in_parquet_has_the_same_plan(snapshot: bytes, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.parquet"
    save_snapshot(SNAPSHOT, file)
    plan = make_answer(snapshot, ".json", [])
    assert plan.status == 0
    assert plan.said == plan.output
    assert make_answer(file.read_bytes(), ".parquet", []) == plan


def test_what_cannot_be_planned_is_said(snapshot: bytes) -> None:
    infeasible = make_answer(snapshot, ".json", ["--drain=1", "--drain=2"])
    assert (infeasible.status, infeasible.output) == (3, b"")
    assert b"no plan meets the hard goals" in infeasible.said


def test_the_fewest_missed_goals_count_then_the_fewest_new_replicas_then_the_first(
    snapshot: bytes,
) -> None:
    all_met = make_answer(snapshot, ".json", [])
    wider = make_answer(snapshot, ".json", ["--replica-balance=2.5", "--leader-balance=2.5"])
    missed = make_answer(snapshot, ".json", ["--exclude=3"])
    none = make_answer(snapshot, ".json", ["--drain=1", "--drain=2"])
    assert [each.status for each in (all_met, wider, missed, none)] == [0, 0, 4, 3]
    assert best_of([none, missed, all_met]) == 2
    assert best_of([all_met, wider]) == 1
    assert best_of([wider, wider]) == 0
    assert best_of([none, none]) == 0


def test_a_damaged_plan_is_refused(snapshot: bytes) -> None:
    plan = make_answer(snapshot, ".json", [])
    damaged = Answer(0, plan.output.replace(b'"topic":"t0"', b'"topic":"t9"', 1), b"")
    with pytest.raises(InvalidInputError, match="the plan of candidate 2"):
        best_of([plan, damaged])
