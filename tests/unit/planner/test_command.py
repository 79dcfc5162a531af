"""``regent plan``: its output, and its exit status."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from regent.cli import main
from regent_rebalance.files import save_snapshot
from tests.unit.planner.clusters import cluster


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    file = tmp_path / "snapshot.json"
    save_snapshot(cluster(["a", "b", "c"], [[1, 2]] * 4, sizes=[10, 20, 30, 40]), file)
    return file


def regent_plan(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["plan", *map(str, arguments)])


def test_a_plan_is_printed_with_its_bound_and_written(snapshot: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    result = regent_plan(snapshot, "-o", file)
    assert result.exit_code == 0
    assert "gap 0: nobody moves fewer" in result.output
    assert "ReplicaDistributionGoal        met (soft)" in result.output
    shown = regent_plan("show", file)
    assert (shown.exit_code, shown.output) == (0, result.output)


def test_options_may_come_before_the_snapshot(snapshot: Path) -> None:
    assert regent_plan("--drain", 3, snapshot).output == regent_plan(snapshot, "--drain", 3).output


def test_a_plan_in_json_is_the_file(snapshot: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert regent_plan(snapshot, "-o", file, "--json").output == file.read_text()
    said = msgspec.json.decode(regent_plan("show", "--json", file).output)
    assert said == msgspec.json.decode(file.read_bytes())["plan"]


def test_plans_are_compared(snapshot: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.parquet"
    assert regent_plan(snapshot, "-o", first).exit_code == 0
    assert regent_plan(snapshot, "-o", second, "--pin", "t0").exit_code == 0
    same = regent_plan("diff", first, first)
    assert (same.exit_code, same.output.partition(":")[0]) == (0, "the plans change the same")
    differ = regent_plan("diff", first, second)
    assert differ.exit_code == 5
    assert "not changed" in differ.output


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--max-replicas", 1], 3, "ReplicaCapacityGoal: 5 replicas have no room"),
        (["--drain", 9], 1, "no broker 9"),
        (["--replication-factor", "t0"], 2, "'t0' is not TOPIC=NUMBER"),
        (["--goal", "NoGoal"], 2, "NoGoal"),
        (["--replica-balance", "0.1"], 1, "0.1 is no threshold"),
    ],
)
def test_what_cannot_be_planned_is_said(
    snapshot: Path, arguments: list[object], status: int, message: str
) -> None:
    result = regent_plan(snapshot, *arguments)
    assert result.exit_code == status
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_goal_that_is_not_met_is_an_exit_status(snapshot: Path) -> None:
    result = regent_plan(snapshot, "--pin", "t0", "--pin", "t1")
    assert result.exit_code == 4
    assert "NOT MET (soft)" in result.output
    assert "broker 3 (rack c) has 0 replicas" in result.output


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = regent_plan(tmp_path / "none.json")
    assert result.exit_code == 1
    assert "none.json cannot be read: No such file" in result.output
