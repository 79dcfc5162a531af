"""Plans for the shapes that Cruise Control's planner was timed on, each in a process of its own."""

import json
import math
import subprocess
import sys
from typing import Any

from rich.console import Console

from benchmarks.benchmark import REGENT, Benchmark, Options, Result, Table
from benchmarks.errors import BenchmarkError
from benchmarks.plan_shapes import SHAPES

_COLUMNS = (
    "shape",
    "CPU s",
    "(CC)",
    "MiB",
    "moves",
    "bound",
    "gap",
    "GB",
    "changed",
    "replicas %",
    "leaders %",
)
_NOTES = (
    "CPU s: of planning, one thread (CC: Cruise Control); MiB: of the whole process.",
    "Cruise Control's CPU seconds were measured once, on such a machine, with 16 goals: also disk, "
    "network and CPU, which this planner does not balance. It left goals violated in every row.",
    "bound: no plan that meets racks and replica counts (within 9 %) has fewer new replicas.",
    "changed: leaders; replicas %, leaders %: standard deviation by average, before > after.",
)


def _run(options: Options, console: Console) -> Result:
    rows, measured = [], []
    for shape in SHAPES:
        if shape.replicas > options.size:
            continue
        figures = _plan(shape.name, options.timeout_s)
        console.print(f"{shape.name}: {figures['cpu_s']:.2f} s", markup=False)
        measured.append({**figures, "cruise_control_s": shape.cruise_control_s})
        rows.append(_row(measured[-1]))
    if not measured:
        raise BenchmarkError(f"no shape has at most {options.size} replicas: the least has 50,001")
    ratios = [f["cruise_control_s"] / f["cpu_s"] for f in measured if f["cruise_control_s"]]
    return Result(
        seconds={REGENT: [figures["cpu_s"] for figures in measured]},
        tables=[Table("Plans: racks, replica counts, leader counts", _COLUMNS, rows)],
        notes=_NOTES,
        details={"shapes": measured},
        speedup=math.exp(sum(map(math.log, ratios)) / len(ratios)),
    )


def _plan(name: str, timeout_s: float) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.plan_one", name],
            stdout=subprocess.PIPE,
            check=True,
            timeout=timeout_s,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise BenchmarkError(f"{name}: {error}") from error
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _row(figures: dict[str, Any]) -> list[str]:
    peer = figures["cruise_control_s"]
    return [
        figures["shape"],
        f"{figures['cpu_s']:.2f}",
        f"{peer:.1f}" if peer else "",
        f"{figures['peak_mib']:,}",
        f"{figures['moves']:,}",
        f"{figures['bound']:,}",
        f"{figures['gap']:.2%}",
        f"{figures['bytes'] / 1e9:,.0f}",
        f"{figures['leader_changes']:,}",
        ">".join(f"{100 * d:.1f}" for d in figures["replica_deviation"]),
        ">".join(f"{100 * d:.1f}" for d in figures["leader_deviation"]),
    ]


BENCHMARK = Benchmark(
    name="plan",
    summary="Least movement for Cruise Control's random shapes of up to 1.3 million replicas.",
    unit="replicas the largest shape has at most",
    default_size=1_500_000,
    run=_run,
    peer="Cruise Control",
)
