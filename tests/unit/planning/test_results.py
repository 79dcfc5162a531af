"""What is read from a run of ``regent plan``: the runs are real ones of the planner's command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from regent.planning.goals import PlannerGoals
from regent.planning.results import (
    InfeasibleGoals,
    InvalidGoals,
    PlannedChange,
    PlannedChanges,
    PlannerFailed,
    PlannerMissing,
    PlanResult,
    read_result,
)
from regent.planning.snapshot import Snapshot, SnapshotBroker, SnapshotPartition
from regent_rebalance.cli import plan

SNAPSHOT = Snapshot(
    tuple(SnapshotBroker(i, rack, alive=True) for i, rack in enumerate("aab", start=1)),
    tuple(SnapshotPartition("orders", p, (1, 2), 1, (10, 10)) for p in range(4)),
)


def planned(folder: Path, goals: PlannerGoals) -> PlanResult:
    file = folder / "snapshot.json"
    file.write_bytes(SNAPSHOT.encode())
    run = CliRunner().invoke(plan, ["make", str(file), "--json", *goals.arguments()])
    return read_result(run.exit_code, run.stdout_bytes, run.stderr)


def test_a_plan_is_read_with_its_bound(tmp_path: Path) -> None:
    result = planned(tmp_path, PlannerGoals(names=("RackAwareGoal",)))
    assert isinstance(result, PlannedChanges)
    assert result.lower_bound == len(result.changes) == 4
    assert result.bytes == 40
    assert all(3 in change.replicas for change in result.changes)
    first = result.changes[0]
    assert first == PlannedChange("orders", 0, (1, 2), first.replicas)


def test_the_same_snapshot_and_goals_have_the_same_plan(tmp_path: Path) -> None:
    assert planned(tmp_path, PlannerGoals()) == planned(tmp_path, PlannerGoals())


def test_goals_that_are_missed_have_their_reasons(tmp_path: Path) -> None:
    goals = PlannerGoals(names=("ReplicaDistributionGoal",), excluded=(3,))
    result = planned(tmp_path, goals)
    assert isinstance(result, PlannedChanges)
    assert [goal.name for goal in result.missed] == ["ReplicaDistributionGoal"]
    assert result.missed[0].reason


def test_goals_that_cannot_be_met_are_sentences(tmp_path: Path) -> None:
    result = planned(tmp_path, PlannerGoals(drained=(1, 2)))
    assert isinstance(result, InfeasibleGoals)
    assert result.reasons
    assert not any(reason.startswith(("Error", " ", "-")) for reason in result.reasons)


def test_goals_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    result = planned(tmp_path, PlannerGoals(excluded=(9,)))
    assert isinstance(result, InvalidGoals)
    assert result.problem.startswith("excluded brokers: the snapshot has no broker 9")


@pytest.mark.parametrize(
    ("status", "output", "errors", "kind"),
    [
        (6, b"", "Error: planning needs the package numpy", PlannerMissing),
        (1, b"", "Traceback (most recent call last):\n  ...\nMemoryError", PlannerFailed),
        (-9, b"", "", PlannerFailed),
        (0, b"{", "", PlannerFailed),
        (0, b'{"partitions":[]}', "", PlannerFailed),
    ],
)
def test_whatever_else_happens_is_no_plan(
    status: int, output: bytes, errors: str, kind: type[PlanResult]
) -> None:
    assert isinstance(read_result(status, output, errors), kind)
