"""Every benchmark runs to its end with a small cluster; what it checks of Regent's requests holds.

Kafka's side is left out: it takes minutes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import kafkatopics, standby
from benchmarks.cli import main
from benchmarks.errors import BenchmarkError
from benchmarks.zookeeper import ZooKeeperSession
from sandbox import ZooKeeper
from sandbox.process import ManagedProcess
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, soak("benchmarks")]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("failover", 100),
        ("broker-crash", 30),
        ("controlled-shutdown", 30),
        ("alter-partition", 500),
        ("topics", 5),
        ("reassignment", 60),
    ],
)
def test_a_sample_is_measured_and_verified(name: str, size: int, tmp_path: Path) -> None:
    document = tmp_path / "figures.json"
    arguments = [name, "--size", str(size), "--rounds", "1", "--samples", "1"]
    arguments += ["--only", "regent", "--idle-timeout", "0", "--json", str(document)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.endswith(f"{name}: only regent was measured\n")
    (seconds,) = json.loads(document.read_text())["seconds"]["regent"]
    assert seconds > 0


def test_every_ending_of_a_replica_is_measured_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "OBSERVED_S", 1.0)
    monkeypatch.setattr(standby, "CHANGES_BEFORE_S", 0.5)
    monkeypatch.setattr(standby, "CHANGES_A_SECOND", 500)
    document = tmp_path / "figures.json"
    arguments = ["standby", "--size", "200", "--rounds", "1", "--samples", "1"]
    arguments += ["--only", "regent", "--idle-timeout", "0", "--json", str(document)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.endswith("standby: only regent was measured\n")
    details = json.loads(document.read_text())["details"]
    take_overs = details["take_overs"]
    assert [(each["ending"], each["changes"]) for each in take_overs] == [
        (ending, changes) for changes in (0, 500) for ending in ("SIGKILL", "SIGSTOP", "SIGTERM")
    ]
    assert all(each["complete_s"] > 0 for each in take_overs)
    assert take_overs[-1]["changed"] > take_overs[0]["changed"] > 0
    assert len(details["standing_by"]) == 1


@pytest.mark.slow
def test_a_plan_on_spark_is_measured_and_is_that_of_a_process(tmp_path: Path) -> None:
    document = tmp_path / "figures.json"
    arguments = ["plan-on-spark", "--size", "50001", "--timeout", "600", "--idle-timeout", "0"]
    result = CliRunner().invoke(main, [*arguments, "--json", str(document)])
    assert result.exit_code == 0, result.output
    assert result.output.endswith("s for A uniform on Spark\n")
    process, *on_spark = json.loads(document.read_text())["details"]["plans"]
    assert [each["way"] for each in on_spark] == ["Spark", "Spark, archive"]
    assert process["cpu_s"].keys() == {"planner"}
    for each in on_spark:
        assert each["cpu_s"].keys() == {"JVM", "driver", "worker", "planner"}
        assert each["peak_mib"] > process["peak_mib"] > 0


def test_events_are_measured_in_every_size() -> None:
    result = CliRunner().invoke(
        main, ["events", "--size", "500", "--rounds", "1", "--samples", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "end of a reassignment of 1 partition" in result.output


def test_kafkatopics_become_ready_and_then_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafkatopics, "QUIET_S", 2.0)
    document = tmp_path / "figures.json"
    arguments = ["kafkatopics", "--size", "20", "--idle-timeout", "0", "--json", str(document)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    last = result.output.splitlines()[-1]
    assert re.fullmatch(r"kafkatopics: \d+\.\d s to Ready, \d+\.\d\d % of a core idle", last)
    measured = json.loads(document.read_text())
    assert measured["seconds"]["bare client"][0] > 0
    details = measured["details"]
    assert details["idle"]["writes"] == 0
    assert details["writes"] >= 20


def test_nobody_waits_for_a_controller_whose_process_has_ended(tmp_path: Path) -> None:
    process = ManagedProcess("controller", ["sh", "-c", "exit 3"], log_path=tmp_path / "log")
    with (
        ZooKeeper() as zookeeper,
        ZooKeeperSession(zookeeper.connect_string) as session,
    ):
        process.start()
        with pytest.raises(BenchmarkError, match="ended with exit code 3"):
            session.await_election(1, triggered_at=0, timeout_s=60.0, process=process)
