"""From a snapshot's file to a plan's file: by a process of its own, and by `spark-submit`.

Everything counts that a user waits for: the start of Python and of Spark, the decoding of the
snapshot, the plan, its bounds and batches, the encoding and the writing of the plan.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import machine
from benchmarks.benchmark import REGENT, Benchmark, Options, Result, Table
from benchmarks.errors import BenchmarkError
from benchmarks.plan_shapes import SHAPES, Shape, generate
from benchmarks.process_tree import Cost, run_measured
from regent_rebalance.files import save_snapshot
from regent_rebalance.goals import ALL_GOALS

_SPARK_TASKS = Path(__file__).parents[1] / "spark_tasks"
MAIN = _SPARK_TASKS / "plan_on_spark.py"
"""What `spark-submit` runs."""

_SPARK = "Spark"

_JVM, _DRIVER, _WORKER, _PLANNER = _PARTS = ("JVM", "driver", "worker", "planner")

_CHOSEN = ("C uniform", "C rack-aware", "C linear", "D uniform")
"""What is measured of clusters with more than 200,000 replicas."""

_ENVIRONMENT = {
    "PYTHONPATH": str(_SPARK_TASKS),
    "PYSPARK_PYTHON": sys.executable,
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_C1 = "-XX:TieredStopAtLevel=1"

_GOALS = [*(f"--goal={name}" for name in ALL_GOALS), "--resource-balance=1.05"]
_COLUMNS = ("shape", "way", "wall s", "CPU s", *_PARTS, "MiB", "JVM MiB", "planner MiB")
_NOTES = (
    "process: `python -m regent_rebalance make`, JSON in and out, as Regent starts it; Spark: "
    "`spark-submit` with the master local[*], from Parquet to JSON; archive: with an archive of "
    "Java's classes that was made before. All plans are the same bytes.",
    "CPU s by part, looked at ten times a second. JVM and planner run side by side in part; wall "
    "time is of use on an idle machine alone.",
    "MiB: all processes at one moment; a page that several share counts once.",
)


def part_of(command: str) -> str:
    """Which part of a plan on Spark a process is."""
    program, *arguments = command.split()
    if "regent_rebalance" in arguments:
        return _PLANNER
    if any(each.startswith("pyspark.") for each in arguments):
        return _WORKER
    is_python = Path(program).name.startswith("python")
    return _DRIVER if is_python and str(MAIN) in arguments else _JVM


def _run(options: Options, console: Console) -> Result:
    shapes = _shapes(options.size)
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Whoever installs the planner fills the cache of compiled functions once.
        run_measured(
            [sys.executable, "-m", "regent_rebalance.compile_ahead"],
            part_of,
            environment=_ENVIRONMENT,
            timeout_s=options.timeout_s,
        )
        files = _Files(folder)
        archive = folder / "classes.jsa"
        save_snapshot(generate(SHAPES[0]), files.parquet)
        _on_spark(files, options, f"-XX:ArchiveClassesAtExit={archive}")
        for shape in shapes:
            snapshot = generate(shape)
            for file in (files.json, files.parquet):
                save_snapshot(snapshot, file)
            for way, cost in _plans(files, archive, options):
                figures = _figures(shape, way, cost)
                measured.append(figures)
                console.print(f"{shape.name}, {way}: {cost.wall_s:.1f} s", markup=False)
    on_spark = [each for each in measured if each["way"] == _SPARK]
    last = on_spark[-1]
    return Result(
        seconds={REGENT: [each["wall_s"] for each in on_spark]},
        tables=[Table("From file to file", _COLUMNS, [_row(each) for each in measured])],
        notes=_NOTES,
        details={"plans": measured},
        headline=f"{last['wall_s']:.1f} s for {last['shape']} on Spark",
    )


def _shapes(size: int) -> list[Shape]:
    fitting = [shape for shape in SHAPES if shape.replicas <= size]
    if not fitting:
        raise BenchmarkError(f"no shape has at most {size} replicas: the least has 50,001")
    return [shape for shape in fitting if shape.name in _CHOSEN] or fitting[:1]


@dataclass(frozen=True, slots=True)
class _Files:
    """A snapshot in both formats, and the plan."""

    folder: Path

    @property
    def json(self) -> Path:
        return self.folder / "snapshot.json"

    @property
    def parquet(self) -> Path:
        return self.folder / "snapshot.parquet"

    @property
    def plan(self) -> Path:
        return self.folder / "plan.json"


def _plans(files: _Files, archive: Path, options: Options) -> Sequence[tuple[str, Cost]]:
    process = _measured(
        [sys.executable, "-m", "regent_rebalance", "make", "/dev/stdin", "--json", *_GOALS],
        options,
        given=files.json,
    )
    measured = [("process", process)]
    for way, java_options in (
        (_SPARK, []),
        (f"{_SPARK}, archive", [f"-XX:SharedArchiveFile={archive}"]),
    ):
        machine.wait_until_idle(busy_share=0.1, timeout_s=options.idle_timeout_s)
        measured.append((way, _on_spark(files, options, *java_options)))
        if files.plan.read_bytes() != process.output:
            raise BenchmarkError("the plan on Spark is another one than the process's")
    return measured


def _on_spark(files: _Files, options: Options, *java_options: str) -> Cost:
    return _measured(
        [
            Path(sys.executable).with_name("spark-submit"),
            *("--master", "local[*]", "--driver-java-options", " ".join([_C1, *java_options])),
            MAIN,
            *("--snapshot", files.parquet.as_uri(), "--plan", files.plan.as_uri(), "--", *_GOALS),
        ],
        options,
    )


def _measured(
    command: Sequence[str | Path], options: Options, *, given: Path | None = None
) -> Cost:
    cost = run_measured(
        command, part_of, environment=_ENVIRONMENT, timeout_s=options.timeout_s, given=given
    )
    if cost.status not in (0, 4):
        raise BenchmarkError(
            f"exit status {cost.status}: {(cost.errors or cost.output).decode(errors='replace')}"
        )
    return cost


def _figures(shape: Shape, way: str, cost: Cost) -> dict[str, Any]:
    return {
        "shape": shape.name,
        "way": way,
        "wall_s": cost.wall_s,
        "cpu_s": dict(cost.cpu_s),
        "peak_mib": cost.peak_mib,
        "peak_mib_of": dict(cost.peak_mib_of),
    }


def _row(figures: dict[str, Any]) -> list[str]:
    cpu_s, mib = figures["cpu_s"], figures["peak_mib_of"]
    return [
        figures["shape"],
        figures["way"],
        f"{figures['wall_s']:.1f}",
        f"{sum(cpu_s.values()):.1f}",
        *(f"{cpu_s[part]:.1f}" if part in cpu_s else "" for part in _PARTS),
        f"{figures['peak_mib']:,.0f}",
        *(f"{mib[part]:,.0f}" if part in mib else "" for part in (_JVM, _PLANNER)),
    ]


BENCHMARK = Benchmark(
    name="plan-on-spark",
    summary="Plans from file to file, by a process of its own and on Spark, their start included.",
    unit="replicas the largest shape has at most",
    default_size=3_000_000,
    run=_run,
)
