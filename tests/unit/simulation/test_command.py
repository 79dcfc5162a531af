"""``regent simulate`` as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from regent.cli import main
from regent.planning.snapshot import Snapshot
from tests.unit.simulation.clusters import snapshot

RACKS = {1: "a", 2: "b", 3: "c"}
ROTATED = snapshot(RACKS, [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
CROWD = snapshot(RACKS, [(1,)] * 12 + [(2, 3)])


class Command:
    """Runs ``regent simulate`` with a snapshot in a file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "snapshot.json"

    def __call__(self, taken: Snapshot, *options: str) -> Result:
        self.file.write_bytes(taken.encode())
        return CliRunner().invoke(main, ["simulate", str(self.file), *options])

    def document(self, taken: Snapshot, *options: str) -> dict[str, list[dict[str, object]]]:
        document: dict[str, list[dict[str, object]]] = json.loads(
            self(taken, *options, "--json").stdout
        )
        return document


@pytest.fixture
def simulate(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_steps_keep_their_order_whatever_their_kind(simulate: Command) -> None:
    options = "--kill 1 --start=1 --kill-rack b --wait 5 --start 2 --kill 3 --unclean on"
    report = simulate.document(ROTATED, *options.split(), "--add-broker", "7=d")
    assert [step["what"] for step in report["steps"]] == [
        "kill 1",
        "start 1",
        "kill rack b",
        "wait 5 s",
        "start 2",
        "kill 3",
        "unclean on",
        "add broker 7 in rack d",
    ]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("--kill 1", 0),
        ("--kill 1 --min-isr 2", 0),
        ("--kill 1 --kill 2 --start 2 --min-isr 2", 10),
        ("--kill 1 --kill 2 --min-isr 1 --min-isr t=2", 10),
        ("--kill 1,2,3 --start 1,2,3", 5),
        ("--kill 9", 1),
        ("--kill 1 --min-isr u=2", 1),
        ("--kill x", 2),
        ("--min-isr 0 --kill 1", 2),
        ("--kill 1 --session-timeout nan", 2),
        ("--kill 1 --session-timeout 1e300", 2),
        ("--restart 1 --restart-time inf", 2),
        ("--add-broker 2147483648=x", 2),
        ("--wait 31536001", 2),
        (f"--wait {'9' * 5000}", 2),
        (f"--kill {'9' * 5000}", 2),
        (f"--kill 1 --min-isr {'9' * 5000}", 2),
        ("", 2),
    ],
)
def test_exit_statuses(simulate: Command, options: str, status: int) -> None:
    result = simulate(ROTATED, *options.split())
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output


def test_a_value_that_its_step_does_not_take_is_named_with_its_option(simulate: Command) -> None:
    output = simulate(ROTATED, "--kill", "1", "--unclean", "maybe").output
    assert "Invalid value for '--unclean': 'maybe' is neither on nor off" in output


def test_conditions_are_passed_on(simulate: Command) -> None:
    steps = ("--kill", "3", "--restart", "1", "--start", "3", "--wait", "600")
    times = "--session-timeout 6 --elections-per-second 2 --restart-time 10"
    killed, _, back, _, waited = simulate.document(
        ROTATED, *steps, *times.split(), "--no-leader-balance"
    )["steps"]
    assert killed["atSeconds"] == 6.5
    assert back["atSeconds"] == 16.5
    assert waited["leaders"] == {"1": 0, "2": 3, "3": 0}


def test_the_report_for_people(simulate: Command) -> None:
    output = simulate(CROWD, "--kill", "1").output
    assert output.splitlines()[0] == "Simulated  3 living brokers, 13 partitions, 14 replicas"
    assert "kill 1: 12 partitions lose their leader (t-0, t-1" in output
    assert "t-9 and 2 more)" in output
    assert "Outage  2 more partitions" in output
    assert "  broker 1: 12 partitions come back, 0 remain without a leader" in output
    assert "Assumed  nothing is written meanwhile" in output
    everything = simulate(CROWD, "--kill", "1", "--all").output
    assert "t-9, t-10, t-11)" in everything
    assert "more" not in everything.replace("brings more back", "")


def test_many_brokers_are_named_in_part(simulate: Command) -> None:
    many = snapshot(dict.fromkeys(range(1, 21), "a"), [(broker,) for broker in range(1, 21)])
    everybody = ",".join(map(str, range(1, 21)))
    output = simulate(many, "--kill", everybody).output
    lines = [line.strip() for line in output.splitlines()]
    assert "10 more" in lines  # in the table of leaders
    assert "10 more brokers" in lines
    assert "(always the one that brings most)" in output
    only_two = simulate(many, "--kill", "1,2").output
    assert "1               1   dead" in only_two
    assert "   3 " in only_two


def test_times_are_told_as_people_say_them(simulate: Command) -> None:
    output = simulate(ROTATED, "--wait", "59", "--wait", "66", "--wait", "7000").output
    rows = {" ".join(line.split()) for line in output.splitlines() if line.startswith("wait")}
    assert {row.split(" s ", 1)[1].split(" yes")[0] for row in rows} == {
        "59.0 s",
        "2 min 5 s",
        "1 h 58 min",
    }


def test_a_snapshot_that_is_none(simulate: Command, tmp_path: Path) -> None:
    missing = CliRunner().invoke(main, ["simulate", str(tmp_path / "none.json"), "--kill", "1"])
    assert missing.exit_code == 1
    assert "none.json cannot be read: No such file or directory" in missing.output
    device = CliRunner().invoke(main, ["simulate", "/dev/zero", "--kill", "1"])
    assert "/dev/zero is a device" in device.output
    parquet = CliRunner().invoke(main, ["simulate", str(tmp_path / "x.parquet"), "--kill", "1"])
    assert parquet.exit_code == 1
    assert "x.parquet: Parquet has no ISRs" in parquet.output
