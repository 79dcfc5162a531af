"""What a command and all that it starts cost."""

from __future__ import annotations

import sys

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.plan_on_spark import MAIN, part_of
from benchmarks.process_tree import Costs, Process, descendants, run_measured


def process(pid: int, parent: int, command: str = "x", cpu_s: float = 0.0) -> Process:
    return Process(pid, parent, 1, command, cpu_s)


def test_who_descends_from_a_process() -> None:
    tree = {p.pid: p for p in (process(1, 0), process(2, 1), process(3, 2), process(9, 0))}
    assert [p.pid for p in descendants(1, tree)] == [1, 2, 3]
    assert descendants(7, tree) == []


def test_parts_add_up_and_the_highest_moment_counts() -> None:
    costs = Costs(lambda command: command)
    costs.add([(process(1, 0, "shell", 0.1), 5.0)])
    costs.add([(process(1, 0, "java", 1.0), 300.0), (process(2, 1, "python", 0.5), 100.0)])
    # A process that has ended has no command, and no memory.
    costs.add([(process(1, 0, "java", 3.0), 350.0), (process(2, 1, "", 0.7), 0.0)])
    assert costs.cpu_s() == {"java": 3.0, "python": 0.7}
    assert (costs.peak_mib, costs.peak_mib_of["java"]) == (400.0, 350.0)


def test_a_process_that_has_ended_before_the_first_look_is_left_out() -> None:
    costs = Costs(part_of)
    costs.add([(process(1, 0, ""), 0.0), (process(2, 1, "java", 0.5), 10.0)])
    assert costs.cpu_s() == {"JVM": 0.5}


def test_figures_that_lack_something_are_none() -> None:
    def refuse(command: str) -> str:
        raise ValueError(command)

    with pytest.raises(ValueError, match="signal"):
        run_measured(
            [sys.executable, "-c", "import signal; signal.sigtimedwait([], 1)"],
            refuse,
            environment={},
            timeout_s=60,
        )


def test_a_command_is_measured_with_what_it_starts() -> None:
    burn = "import time; x = bytearray(60_000_000)\nwhile time.process_time() < 0.6: pass"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}, 'child'])"
    cost = run_measured(
        [sys.executable, "-c", start],
        lambda command: "child" if command.rstrip().endswith(" child") else "parent",
        environment={},
        timeout_s=60,
    )
    assert cost.status == 0
    assert cost.cpu_s["child"] > 0
    assert cost.peak_mib_of["child"] > 50


def test_a_command_without_end_is_ended_with_what_it_has_started() -> None:
    wait = "import signal; signal.pause()"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {wait!r}])"
    with pytest.raises(BenchmarkError, match="timed out"):
        run_measured([sys.executable, "-c", start], str, environment={}, timeout_s=1)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("/usr/bin/java -cp x org.apache.spark.deploy.SparkSubmit " + str(MAIN), "JVM"),
        (f"/venv/bin/python3 {MAIN} --snapshot file:/x", "driver"),
        ("/venv/bin/python3 -m pyspark.daemon pyspark.worker", "worker"),
        ("/venv/bin/python3 -m regent_rebalance make /x --json", "planner"),
        ("bash /venv/bin/spark-submit --master local[*]", "JVM"),
    ],
)
def test_processes_of_a_plan_on_spark_have_their_part(command: str, part: str) -> None:
    assert part_of(command) == part
