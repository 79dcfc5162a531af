"""``regent plan``: its output, and its exit status."""

from __future__ import annotations

import gc
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from regent.cli import main
from regent_rebalance.cli_options import ByteCount
from regent_rebalance.files import load_plan, load_snapshot, save_plan, save_snapshot
from regent_rebalance.goals import Goals
from regent_rebalance.planner import make_plan
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


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_the_snapshot_is_not_overwritten(snapshot: Path, tmp_path: Path, option: str) -> None:
    before = snapshot.read_bytes()
    (tmp_path / "link.json").symlink_to(snapshot)
    result = regent_plan(snapshot, option, tmp_path / "link.json")
    assert result.exit_code == 2
    assert f"{option} names" in result.output
    assert snapshot.read_bytes() == before


def test_options_may_come_before_the_snapshot(snapshot: Path) -> None:
    assert regent_plan("--drain", 3, snapshot).output == regent_plan(snapshot, "--drain", 3).output


def test_a_plan_in_json_is_the_file(snapshot: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert regent_plan(snapshot, "-o", file, "--json").output == file.read_text()
    said = msgspec.json.decode(regent_plan("show", "--json", file).output)
    assert said == msgspec.json.decode(file.read_bytes())["plan"]


def test_the_collector_goes_on_after_a_command(snapshot: Path) -> None:
    assert gc.isenabled()
    for arguments in ((snapshot,), (snapshot, "--drain", 9)):
        regent_plan(*arguments)
        assert gc.isenabled()


def test_plans_are_compared(snapshot: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.parquet"
    assert regent_plan(snapshot, "-o", first).exit_code == 0
    assert regent_plan(snapshot, "-o", second, "--pin", "t0").exit_code == 0
    same = regent_plan("diff", first, first)
    assert (same.exit_code, same.output.partition(":")[0]) == (0, "the plans change the same")
    differ = regent_plan("diff", first, second)
    assert differ.exit_code == 5
    assert "not changed" in differ.output


def test_a_report_is_written_when_planning_and_from_the_plan_file_alone(
    snapshot: Path, tmp_path: Path
) -> None:
    file, first, second = (tmp_path / name for name in ("plan.json", "1.html", "2.html"))
    assert regent_plan(snapshot, "-o", file, "--report", first).exit_code == 0
    assert regent_plan("show", file, "--report", second).exit_code == 0
    assert first.read_bytes() == second.read_bytes()
    assert first.read_text().startswith("<!DOCTYPE html>")


def test_a_plan_file_without_brokers_has_no_report(snapshot: Path, tmp_path: Path) -> None:
    file, report = tmp_path / "plan.json", tmp_path / "1.html"
    save_plan(make_plan(load_snapshot(snapshot), Goals()), file)
    result = regent_plan("show", file, "--report", report)
    assert result.exit_code == 1
    assert "says nothing of brokers: plan again" in result.output
    assert not report.exists()


def test_batches_are_written_as_kafka_reassign_partitions_reads_them(
    snapshot: Path, tmp_path: Path
) -> None:
    file, folder = tmp_path / "plan.json", tmp_path / "batches"
    assert regent_plan(snapshot, "-o", file, "--batch-copies", 1).exit_code == 0
    result = regent_plan("split", file, folder)
    written = [Path(line) for line in result.output.splitlines()]
    assert (result.exit_code, sorted(folder.iterdir())) == (0, written)
    batches = [msgspec.json.decode(path.read_bytes()) for path in written]
    assert {batch["version"] for batch in batches} == {1}
    rows = [row for batch in batches for row in batch["partitions"]]
    assert {tuple(row) for row in rows} == {("topic", "partition", "replicas")}
    planned = msgspec.json.decode(file.read_bytes())["partitions"]
    assert sorted((row["topic"], row["partition"], row["replicas"]) for row in rows) == [
        (row["topic"], row["partition"], row["replicas"]) for row in planned
    ]
    for number, batch in enumerate(batches, 1):
        assert len(batch["partitions"]) == sum(row["batch"] == number for row in planned)


def test_batches_of_another_plan_do_not_stay_among_those_of_a_new_one(
    snapshot: Path, tmp_path: Path
) -> None:
    many, few, folder = tmp_path / "many.json", tmp_path / "few.json", tmp_path / "batches"
    assert regent_plan(snapshot, "-o", many, "--batch-copies", 1).exit_code == 0
    assert regent_plan(snapshot, "-o", few, "--batch-copies", 1000).exit_code == 0
    assert regent_plan("split", few, tmp_path / "few").output.count("\n") == 1
    for _ in range(2):
        assert regent_plan("split", many, folder).exit_code == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    refused = regent_plan("split", few, folder)
    assert refused.exit_code == 1
    assert f"{folder} has batches of another plan (batch-" in refused.output
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_what_if_a_rack_were_lost_and_brokers_added(snapshot: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    options = ["--lose-rack", "a", "--add-broker", "7=d", "--replication-factor", "t*=3"]
    result = regent_plan(snapshot, "-o", file, *options)
    assert "what if    broker 7 is added in rack d" in result.output
    assert "what if    rack a is lost, 1 brokers: 4 partitions lose their leader" in result.output
    assert "the plan is for a cluster that does not exist" in result.output
    split = regent_plan("split", file, tmp_path / "batches")
    assert (split.exit_code, (tmp_path / "batches").exists()) == (1, False)
    assert "is for a cluster that does not exist (broker 7 is added in rack d; " in split.output
    assert {7} == {b for b in load_plan(file).changes.after.tolist() if b > 3}
    assert regent_plan("show", file).output == result.output


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--add-broker", "x=a"], 2, "'x=a' is not ID=RACK"),
        (["--add-broker", "7=a", "--add-broker", "7=b"], 2, "broker 7 is added twice"),
        (["--throttle", "fast"], 2, "'fast' is no number of bytes"),
        (["--throttle", "0"], 1, "throttle: 0 for a broker: at least 1"),
        (["--max-replicas", 1], 3, "ReplicaCapacityGoal: 5 replicas have no room"),
        (["--lose-broker", 9], 1, "no broker 9"),
        (["--replication-factor", "t0"], 2, "'t0' is not TOPIC=NUMBER"),
        (["--goal", "NoGoal"], 2, "NoGoal"),
        (["--replica-balance", "0.1"], 1, "0.1 is no threshold"),
        (["--max-replicas", 10**30], 2, "is not in the range"),
        (["--batch-copies", 10**30], 2, "is not in the range"),
        (["--batch-bytes", f"{10**30}TB"], 2, "is more than 9,007,199,254,740,992 bytes"),
        (["--drain", 2**31], 2, "2147483648 is not in the range"),
        (["--exclude", 2**63], 2, "is not in the range"),
        (["--lose-broker", 2**63], 2, "is not in the range"),
        (["--add-broker", "2147483648=a"], 2, "'2147483648=a' is not ID=RACK"),
        (["--replication-factor", "t*=32768"], 2, "'t*=32768' is not TOPIC=NUMBER"),
        (["--replication-factor", f"t*={'9' * 5000}"], 2, "is not TOPIC=NUMBER"),
    ],
)
def test_what_cannot_be_planned_is_said(
    snapshot: Path, arguments: list[object], status: int, message: str
) -> None:
    result = regent_plan(snapshot, *arguments)
    assert result.exit_code == status
    assert message in result.output
    assert "Traceback" not in result.output


def test_absent_broker_to_be_drained_is_named_on_standard_error(snapshot: Path) -> None:
    run = regent_plan(snapshot, "--drain", "99")
    assert run.exit_code == regent_plan(snapshot).exit_code
    assert run.stderr.startswith("Note: drained brokers: the snapshot has no broker 99")


def test_bytes_are_given_in_decimal_units() -> None:
    given = ("7", "7B", "1.5kB", "50MB", "2GB", "3 TB")
    assert [ByteCount().convert(text, None, None) for text in given] == [
        7, 7, 1_500, 50_000_000, 2_000_000_000, 3_000_000_000_000
    ]  # fmt: skip


def test_a_goal_that_is_not_met_is_an_exit_status(snapshot: Path) -> None:
    result = regent_plan(snapshot, "--pin", "t0", "--pin", "t1")
    assert result.exit_code == 4
    assert "NOT MET (soft)" in result.output
    assert "broker 3 (rack c) has 0 replicas" in result.output


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = regent_plan(tmp_path / "none.json")
    assert result.exit_code == 1
    assert "none.json cannot be read: No such file" in result.output


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_file_that_cannot_be_written_is_named(snapshot: Path, option: str) -> None:
    file = snapshot.parent / "nowhere" / "file"
    result = regent_plan(snapshot, option, file)
    assert result.exit_code == 1
    assert result.output == f"Error: {file} cannot be written: No such file or directory\n"
