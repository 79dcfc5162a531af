"""What the planner's command says where the machine lacks memory, or room for what is printed."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regent.planning.results import PlannerFailed, read_result

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join((str(ROOT / "operator"), str(ROOT / "spark_tasks"))),
    "OPENBLAS_NUM_THREADS": "1",
}
MEMORY_BYTES = 1 << 30


@pytest.mark.parametrize(
    ("command", "arguments"),
    [(["regent_rebalance"], ["make", "--help"]), (["regent", "plan"], ["show", "PLAN"])],
)
def test_a_full_disk_is_named_and_no_traceback_follows(
    command: list[str], arguments: list[str], tmp_path: Path
) -> None:
    snapshot, plan = tmp_path / "snapshot.json", tmp_path / "plan.json"
    snapshot.write_text('{"version": 1, "brokers": [{"id": 1}], "partitions": []}')
    if "PLAN" in arguments:
        made = run(["regent_rebalance", str(snapshot), "--output", str(plan)], stdout="/dev/null")
        assert made.returncode == 0, made.stderr
        arguments = ["show", str(plan)]
    ended = run([*command, *arguments], stdout="/dev/full")
    assert (ended.returncode, ended.stderr.decode()) == (
        8,
        "Error: the output cannot be written: No space left on device. Make room, or write it "
        "elsewhere\n",
    )


def test_too_little_memory_is_named_and_is_a_failure_that_is_tried_again(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    with snapshot.open("wb") as file:
        file.truncate(4 * MEMORY_BYTES)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))

    ended = run(["regent_rebalance", str(snapshot)], stdout="/dev/null", before=limit)
    said = ended.stderr.decode()
    assert ended.returncode == 8
    assert said.startswith("Error: there is not enough memory")
    assert said.count("\n") == 1
    result = read_result(ended.returncode, b"", said)
    assert isinstance(result, PlannerFailed)
    assert "not enough memory" in result.problem


def run(
    command: list[str], *, stdout: str, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[bytes]:
    with Path(stdout).open("wb") as output:
        return subprocess.run(
            [sys.executable, "-m", *command],
            env=ENVIRONMENT,
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
            preexec_fn=before,
        )
