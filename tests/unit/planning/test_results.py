"""What is read from a run of ``regent plan``: the runs are real ones of the planner's command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from regent.model.log_dirs import LogDirectory
from regent.planning.goals import PlannerGoals
from regent.planning.results import (
    HistoryUnusable,
    InfeasibleGoals,
    InvalidGoals,
    PlannedChange,
    PlannedChanges,
    PlannerFailed,
    PlannerMissing,
    PlanResult,
    read_answer,
    read_result,
)
from regent.planning.snapshot import Snapshot, SnapshotBroker, SnapshotPartition
from regent_rebalance.cli import plan

SNAPSHOT = Snapshot(
    tuple(SnapshotBroker(i, rack, alive=True) for i, rack in enumerate("aab", start=1)),
    tuple(SnapshotPartition("orders", p, (1, 2), 1, (10, 10)) for p in range(4)),
)


def run_plan(folder: Path, *options: str, snapshot: bytes = SNAPSHOT.encode()) -> Result:
    file = folder / "snapshot.json"
    file.write_bytes(snapshot)
    return CliRunner().invoke(plan, ["make", str(file), "--json", *options])


def planned(folder: Path, goals: PlannerGoals) -> PlanResult:
    run = run_plan(folder, *goals.arguments())
    return read_result(run.exit_code, run.stdout_bytes, run.stderr)


def test_a_plan_is_read_with_its_bound(tmp_path: Path) -> None:
    result = planned(tmp_path, PlannerGoals(names=("RackAwareGoal",)))
    assert isinstance(result, PlannedChanges)
    assert result.lower_bound == len(result.changes) == 4
    assert result.bytes == 40
    assert all(3 in change.replicas for change in result.changes)
    first = result.changes[0]
    assert first == PlannedChange("orders", 0, (1, 2), first.replicas, batch=1)


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
    names = ("MinTopicLeadersPerBrokerGoal",)
    result = planned(tmp_path, PlannerGoals(names=names, min_leaders=(("gone", 1),)))
    assert isinstance(result, InvalidGoals)
    assert result.problem.startswith("least leaders: the snapshot has no topic 'gone'")


def test_goals_about_absent_brokers_and_topics_are_notes_of_the_plan(tmp_path: Path) -> None:
    result = planned(tmp_path, PlannerGoals(drained=(9,), excluded=(8,), pinned=("gone",)))
    assert isinstance(result, PlannedChanges)
    assert [note.split(",")[0] for note in result.notes] == [
        "drained brokers: the snapshot has no broker 9",
        "excluded brokers: the snapshot has no broker 8",
        "pinned topics: the snapshot has no topic gone",
    ]


@pytest.mark.parametrize(
    ("status", "output", "errors", "kind"),
    [
        (6, b"", "Error: planning needs the package numpy", PlannerMissing),
        (7, b"", "Error: the newest sample in /history is of yesterday", HistoryUnusable),
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


def test_what_java_says_before_the_planner_is_not_the_message() -> None:
    java = "WARNING: Using incubator modules\n" + "26/01/01 00:00:00 WARN Utils: a warning\n" * 100
    unusable = read_result(7, b"", f"{java}Error: the newest sample is of yesterday\n")
    assert unusable == HistoryUnusable("the newest sample is of yesterday")
    assert read_result(1, b"", f"{java}Error: no broker 7\n") == InvalidGoals("no broker 7")
    failed = read_result(1, b"", f"{java}java.lang.OutOfMemoryError: Java heap space\n")
    assert isinstance(failed, PlannerFailed)
    assert failed.problem.endswith("Java heap space")


def test_what_java_calls_an_error_is_not_the_planners_message() -> None:
    java = "Error: A JNI error has occurred, please check your installation\n"
    python = "Traceback (most recent call last):\n  File x, line 1\nMemoryError\n"
    assert isinstance(read_result(1, b"", java + python), PlannerFailed)
    listed = "WARN these settings are deprecated:\n  - spark.a\n"
    hopeless = f"{listed}Error: no plan meets the hard goals:\n  - broker 1 is full\n"
    assert read_result(3, b"", hopeless) == InfeasibleGoals(("broker 1 is full",))


def test_a_plan_whose_changes_are_not_those_of_its_hash_is_none(tmp_path: Path) -> None:
    run = run_plan(tmp_path, "--drain=1")
    assert isinstance(read_result(run.exit_code, run.stdout_bytes, ""), PlannedChanges)
    damaged = run.stdout_bytes.replace(b'"topic":"orders"', b'"topic":"others"', 1)
    assert damaged != run.stdout_bytes
    result = read_result(run.exit_code, damaged, "")
    assert isinstance(result, PlannerFailed)
    assert "its plan is damaged" in result.problem


def forged(*, plan: dict[str, Any] | None = None, change: dict[str, Any] | None = None) -> bytes:
    """A plan of one change, with the hash of its changes, as anybody can make it."""
    changes = [{"topic": "t", "partition": 0, "replicas": [2], "previous": [1], **(change or {})}]
    digest = hashlib.sha256(b"regent plan 1\n")
    for each in changes:
        before, after = (",".join(map(str, each[ids])) for ids in ("previous", "replicas"))
        digest.update(f"{each['topic']} {each['partition']} {before} {after}\n".encode())
    summary = {
        "hash": f"sha256:{digest.hexdigest()}",
        "bytes": 1,
        "leaderChanges": 0,
        "bounds": {"mandatory": 1, "fractional": 1, "dual": 1},
        "goals": [],
    }
    return json.dumps({"plan": {**summary, **(plan or {})}, "partitions": changes}).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(forged(plan={"bytes": 2**63}), id="more bytes than a status holds"),
        pytest.param(forged(plan={"bytes": -1}), id="fewer bytes than none"),
        pytest.param(forged(plan={"leaderChanges": -1}), id="fewer changes than none"),
        pytest.param(
            forged(plan={"bounds": {"mandatory": -3, "fractional": -2, "dual": -1}}),
            id="a bound below nothing",
        ),
        pytest.param(
            forged(plan={"goals": [{"name": "g" * 65, "met": False}]}), id="the name of a goal"
        ),
        pytest.param(
            forged(plan={"goals": [{"name": "g", "met": False}] * 100}), id="more goals than known"
        ),
        pytest.param(forged(change={"partition": 2**31}), id="a partition that cannot be"),
        pytest.param(forged(change={"replicas": [-1]}), id="a broker that cannot be"),
        pytest.param(b'{"more":' + b"[" * 100_000, id="nested"),
    ],
)
def test_a_plan_of_somebody_else_says_nothing_that_a_status_cannot_hold(body: bytes) -> None:
    """Else the resource would fail at each attempt to write its status."""
    assert isinstance(read_answer(0, forged()), PlannedChanges)
    result = read_answer(0, body)
    assert isinstance(result, PlannerFailed)
    assert result.problem.startswith("its plan cannot be read: ")


def test_errors_without_end_are_cut() -> None:
    endless = 10_000_000
    for status in (1, 6, 137):
        result = read_answer(status, b"Error: " + b"x" * endless)
        assert isinstance(result, InvalidGoals | PlannerMissing | PlannerFailed)
        assert len(result.problem) < 3000
    for reasons in (b"  - x\n" * endless, b"  - " + b"x" * endless, b"x" * endless):
        result = read_answer(3, reasons)
        assert isinstance(result, InfeasibleGoals)
        assert 0 < sum(map(len, result.reasons)) < 300_000


def test_an_answer_is_the_plan_or_the_errors(tmp_path: Path) -> None:
    for options in (["--drain=1"], ["--drain=1", "--drain=2"], ["--exclude=77"]):
        run = run_plan(tmp_path, *options)
        said = run.stdout_bytes if run.exit_code in (0, 4) else run.stderr_bytes
        assert read_answer(run.exit_code, said) == read_result(
            run.exit_code, run.stdout_bytes, run.stderr
        )
    killed = read_answer(-9, b"")
    assert isinstance(killed, PlannerFailed)
    assert "signal 9" in killed.problem
    assert isinstance(read_answer(0, b"{"), PlannerFailed)


def test_what_a_plan_says_of_its_loads_is_read(tmp_path: Path) -> None:
    with_notes = b'{"notes":["loads are of 6 moments"],' + SNAPSHOT.encode()[1:]
    run = run_plan(tmp_path, snapshot=with_notes)
    noted = read_result(run.exit_code, run.stdout_bytes, "")
    assert isinstance(noted, PlannedChanges)
    assert noted.notes == ("loads are of 6 moments",)
    plain = planned(tmp_path, PlannerGoals())
    assert isinstance(plain, PlannedChanges)
    assert (plain.notes, plain.changes) == ((), noted.changes)


def test_disks_and_directories_that_a_plan_has_no_room_on_are_read(tmp_path: Path) -> None:
    directories = tuple(LogDirectory(path, 50, 45, 9) for path in ("/a", "/b"))
    full = Snapshot(
        (
            SnapshotBroker(1, "a", alive=True, disk_bytes=100),
            SnapshotBroker(2, "b", alive=True, disk_bytes=100, log_dirs=directories),
            SnapshotBroker(3, "a", alive=True, disk_bytes=5),
        ),
        tuple(SnapshotPartition("orders", p, (1,), 1, (10,)) for p in range(4)),
    )
    run = run_plan(tmp_path, snapshot=full.encode())
    result = read_answer(run.exit_code, run.stdout_bytes)
    assert isinstance(result, PlannedChanges)
    disks, log_directories = result.warnings
    assert "broker 3 lacks 5 bytes" in disks
    assert result.short_of_room == (3,)
    assert {change.batch for change in result.changes} > {1}
    assert log_directories.startswith("log directories without room: /a of broker 2")
    assert result.notes == ()
