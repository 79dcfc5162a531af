"""The planner as a real child process: what goes in, what comes out, and that it does not stay."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regent.kube.plan_runner import PlanTask
from regent.kube.planner_process import PlannerProcess
from regent.kube.process_output import ERRORS_MAX, talk
from regent.planning.goals import PlannerGoals
from regent.planning.histories import PlannerHistory
from regent.planning.results import (
    HistoryUnusable,
    InvalidGoals,
    PlannedChanges,
    PlannerFailed,
    PlannerMissing,
)
from regent.planning.snapshot import Snapshot, SnapshotBroker, SnapshotPartition
from sandbox.process import run_guarded
from tests.support.waiting import until

SNAPSHOT = Snapshot(
    tuple(SnapshotBroker(i, None, alive=True) for i in (1, 2, 3)),
    tuple(SnapshotPartition("orders", p, (1, 2), 1, (10, 10)) for p in range(6)),
).encode()
PLANNER = PlannerProcess(timeout_s=120, memory_bytes=512 * 1024**2)


def put_first(monkeypatch: pytest.MonkeyPatch, module: Path, code: str) -> None:
    """Have processes that start from now on import this instead of the module of that name."""
    module.write_text(code)
    path = f"{module.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setenv("PYTHONPATH", path)


def _children() -> set[str]:
    """Process ids of the children of this process."""
    return {
        child
        for listed in Path("/proc/self/task").glob("*/children")
        for child in listed.read_text().split()
    }


@pytest.fixture
def planners() -> Callable[[], set[str]]:
    """The children that came during the test: fixtures of other tests have theirs."""
    before = _children()
    return lambda: _children() - before


async def test_a_snapshot_goes_in_and_a_plan_comes_out(planners: Callable[[], set[str]]) -> None:
    result = await PLANNER.run(PlanTask(SNAPSHOT, PlannerGoals()))
    assert isinstance(result, PlannedChanges)
    assert {broker for change in result.changes for broker in change.replicas} == {1, 2, 3}
    assert result.lower_bound > 0
    assert planners() == set()


async def test_what_the_planner_refuses_is_an_answer() -> None:
    result = await PLANNER.run(PlanTask(b"{}", PlannerGoals()))
    assert isinstance(result, InvalidGoals)
    assert "/dev/stdin is no snapshot" in result.problem


async def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "raise ModuleNotFoundError(\"No module named 'ortools'\", name='ortools')\n"
    put_first(monkeypatch, tmp_path / "ortools.py", missing)
    assert await PLANNER.run(PlanTask(SNAPSHOT, PlannerGoals())) == PlannerMissing(
        "planning needs the package ortools: pip install 'regent[planner]'"
    )


async def test_it_gets_no_settings_of_regent_and_all_processors_until_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = (
        "import os, resource, sys\n"
        "sys.exit(f'Error: {sorted(os.environ)} {resource.getrlimit(resource.RLIMIT_CPU)}')\n"
    )
    put_first(monkeypatch, tmp_path / "ortools.py", spy)
    monkeypatch.setenv("REGENT_ZOOKEEPER_SASL_PASSWORD_FILE", "/secret")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    result = await PLANNER.run(PlanTask(SNAPSHOT, PlannerGoals()))
    assert isinstance(result, InvalidGoals)
    assert "PYTHONPATH" in result.problem
    assert "REGENT" not in result.problem
    assert result.problem.endswith("(968, 968)"), "8 times 120 seconds, and one more each"


async def test_a_history_at_a_url_is_for_spark(planners: Callable[[], set[str]]) -> None:
    history = PlannerHistory(
        place="s3a://bucket/regent", window_s=60, percentile=95, max_age_s=60, cluster=None
    )
    result = await PLANNER.run(PlanTask(SNAPSHOT, PlannerGoals(), history=history))
    assert isinstance(result, HistoryUnusable)
    assert "planner_history is s3a://bucket/regent" in result.problem


async def test_without_spark_a_history_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "raise ModuleNotFoundError(\"No module named 'pyspark'\", name='pyspark')\n"
    put_first(monkeypatch, tmp_path / "pyspark.py", missing)
    history = PlannerHistory(
        place="/history", window_s=60, percentile=95, max_age_s=60, cluster=None
    )
    result = await PLANNER.run(PlanTask(SNAPSHOT, PlannerGoals(), history=history))
    assert result == PlannerMissing(
        "a history is read by Spark, and needs the package pyspark: pip install "
        "'regent[planner,spark]'"
    )


async def test_a_planner_that_takes_too_long_is_ended(planners: Callable[[], set[str]]) -> None:
    result = await PlannerProcess(timeout_s=0.01, memory_bytes=512 * 1024**2).run(
        PlanTask(SNAPSHOT, PlannerGoals())
    )
    assert result == PlannerFailed("it took longer than 0.01 s (setting planner_timeout_s)")
    assert planners() == set()


async def test_a_planner_that_takes_too_much_memory_is_no_plan() -> None:
    large = Snapshot(
        tuple(SnapshotBroker(i, None, alive=True) for i in (1, 2, 3)),
        tuple(SnapshotPartition("o" * 240, p, (1, 2), 1, (10, 10)) for p in range(200_000)),
    ).encode()
    result = await PlannerProcess(timeout_s=120, memory_bytes=64 * 1024**2).run(
        PlanTask(large, PlannerGoals())
    )
    assert isinstance(result, PlannerFailed)
    assert "setting planner_memory_bytes" in result.problem


async def test_a_planner_that_writes_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planners: Callable[[], set[str]]
) -> None:
    flood = "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n"
    put_first(monkeypatch, tmp_path / "ortools.py", flood)
    planner = PlannerProcess(timeout_s=120, memory_bytes=512 * 1024**2, plan_bytes=1_000_000)
    result = await planner.run(PlanTask(SNAPSHOT, PlannerGoals()))
    assert result == PlannerFailed(
        "it has written more than 1,000,000 bytes (setting planner_exchange_max_bytes)"
    )
    assert planners() == set()


async def test_of_what_a_planner_complains_of_the_end_is_kept(tmp_path: Path) -> None:
    complaint = (
        f"import os, sys\nfor _ in range({2 * ERRORS_MAX // 65536}):\n"
        "    os.write(2, b'y' * 65536)\nsys.exit('the last word')\n"
    )
    (tmp_path / "complaint.py").write_text(complaint)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(tmp_path / "complaint.py")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await talk(process, b"", limit=0)
    assert (output, process.returncode) == (b"", 1)
    assert len(errors) == ERRORS_MAX
    assert errors.endswith(b"yythe last word\n")


async def test_a_planner_that_nobody_waits_for_is_ended(planners: Callable[[], set[str]]) -> None:
    running = asyncio.create_task(PLANNER.run(PlanTask(SNAPSHOT, PlannerGoals())))

    await until(lambda: planners(), "the planner to be started")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert planners() == set()


async def test_more_than_a_command_line_takes_is_refused() -> None:
    pinned = tuple(f"{'t' * 240}{i}" for i in range(5000))
    result = await PLANNER.run(PlanTask(SNAPSHOT, PlannerGoals(pinned=pinned)))
    assert result == PlannerFailed("5000 pinned topics do not fit into a command line")


UNPRIVILEGED = """
import asyncio, ctypes, os, resource, sys
from regent.kube.plan_runner import PlanTask
from regent.kube.planner_process import PlannerProcess
from regent.planning.goals import PlannerGoals
from tests.unit.kube.test_planner_process import SNAPSHOT

if sys.argv[1:] != ["again"]:
    for capability in (23, 24):  # CAP_SYS_NICE, CAP_SYS_RESOURCE
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    os.execv(sys.executable, [sys.executable, __file__, "again"])
os.nice(15)
resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
planner = PlannerProcess(timeout_s=120, memory_bytes=2**31)
print(type(asyncio.run(planner.run(PlanTask(SNAPSHOT, PlannerGoals())))).__name__)
"""


def test_a_regent_with_tighter_limits_and_lower_priority_plans_within_them(tmp_path: Path) -> None:
    script = tmp_path / "unprivileged.py"
    script.write_text(UNPRIVILEGED)
    path = os.pathsep.join(each for each in sys.path if each)
    done = run_guarded([sys.executable, script], environment={"PYTHONPATH": path}, timeout_s=120)
    assert (done.exit_code, done.stdout) == (0, "PlannedChanges\n"), done
