"""Plans for the shapes that Cruise Control's planner was timed on, each in a process of its own."""

import json
import math
import subprocess
import sys
from typing import Any

from rich.console import Console

from benchmarks.benchmark import (
    KAFKA,
    KAFKA_VERSION,
    REGENT,
    Benchmark,
    Options,
    Result,
    Table,
)
from benchmarks.errors import BenchmarkError
from benchmarks.plan_one import GENERATE, KINDS
from benchmarks.plan_shapes import SHAPES
from benchmarks.plan_small import NOTES, measure_small, small_table

_COLUMNS = (
    "shape",
    "CPU s",
    "(CC)",
    "MiB",
    "moves",
    "bound",
    "gap",
    "missed",
    "GB",
    "changed",
    "replicas %",
    "leaders %",
)
_GENERATE_COLUMNS = (
    "shape", "CPU s", "MiB", "moves", "of ours", "GB", "changed", "missed", "replicas %",
    "leaders %",
)  # fmt: skip
_TITLES = {
    "counts": "Racks, replica counts, leader counts",
    "moves": "Disks, networks and topics, too; fewest moves",
    "bytes": "Disks, networks and topics, too; fewest bytes",
}
_NOTES = (
    "CPU s: of planning, one thread, with the loading of what was compiled before (CC: Cruise "
    "Control); MiB: of the whole process.",
    "Cruise Control's CPU seconds were measured once, on such a machine, with 16 goals: also CPU, "
    "potential network out and leaders' bytes in, which this planner does not know. It left goals "
    "violated in every row. Here followers are as large as their leader, there they are not.",
    "bound: no plan that meets the goals of its table has fewer new replicas; gap: in bytes in the "
    "last table; missed: soft goals that are not met.",
    "changed: leaders; replicas %, leaders %: standard deviation by average, before > after.",
    "of ours: moves by those of the second table; missed: of its goals.",
    "Speed against Cruise Control's: of the second table.",
)


def _run(options: Options, console: Console) -> Result:
    shapes = [shape for shape in SHAPES if shape.replicas <= options.size]
    if not shapes:
        raise BenchmarkError(f"no shape has at most {options.size} replicas: the least has 50,001")
    # Whoever installs the planner fills the cache of compiled functions once.
    _plan(shapes[0].name, "moves", options.timeout_s)
    measured = []
    for kind in KINDS:
        for shape in shapes:
            figures = _plan(shape.name, kind, options.timeout_s)
            console.print(f"{kind}, {shape.name}: {figures['cpu_s']:.2f} s", markup=False)
            measured.append({**figures, "cruise_control_s": shape.cruise_control_s})
    generated = []
    for shape in shapes if KAFKA in options.sides else ():
        generated.append(_plan(shape.name, GENERATE, options.timeout_s))
        cpu_s = generated[-1]["cpu_s"]
        console.print(f"{GENERATE}, {shape.name}: {cpu_s:.2f} s", markup=False)
    small = measure_small(console, with_peer=bool(generated), timeout_s=options.timeout_s)
    compared = [f for f in measured if f["kind"] == "moves" and f["cruise_control_s"]]
    ratios = [figures["cruise_control_s"] / figures["cpu_s"] for figures in compared]
    return Result(
        seconds={REGENT: [f["cpu_s"] for f in measured if f["kind"] == "moves"]},
        tables=[
            Table(title, _COLUMNS, [_row(f) for f in measured if f["kind"] == kind])
            for kind, title in _TITLES.items()
        ]
        + [_generate_table(generated, measured)] * bool(generated)
        + [small_table(small)],
        notes=(*_NOTES, *NOTES),
        details={"shapes": measured, "generate": generated, "small": small},
        speedup=math.exp(sum(map(math.log, ratios)) / len(ratios)),
    )


def _generate_table(generated: list[dict[str, Any]], measured: list[dict[str, Any]]) -> Table:
    planned = {figures["shape"]: figures for figures in measured if figures["kind"] == "moves"}
    return Table(
        f"kafka-reassign-partitions --generate of Kafka {KAFKA_VERSION}, without its start",
        _GENERATE_COLUMNS,
        [
            [
                figures["shape"],
                f"{figures['cpu_s']:.2f}",
                f"{figures['peak_mib']:,}",
                f"{figures['moves']:,}",
                f"{figures['moves'] / max(1, planned[figures['shape']]['moves']):.1f}",
                f"{figures['bytes'] / 1e9:,.0f}",
                f"{figures['leader_changes']:,}",
                str(len(figures["missed"])),
                f"{100 * figures['replica_deviation']:.1f}",
                f"{100 * figures['leader_deviation']:.1f}",
            ]
            for figures in generated
        ],
    )


def _plan(name: str, kind: str, timeout_s: float) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.plan_one", name, kind],
            stdout=subprocess.PIPE,
            check=True,
            timeout=timeout_s,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise BenchmarkError(f"{name}, {kind}: {error}") from error
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
        str(figures["missed"]),
        f"{figures['bytes'] / 1e9:,.0f}",
        f"{figures['leader_changes']:,}",
        ">".join(f"{100 * d:.1f}" for d in figures["replica_deviation"]),
        ">".join(f"{100 * d:.1f}" for d in figures["leader_deviation"]),
    ]


BENCHMARK = Benchmark(
    name="plan",
    summary="Plans for Cruise Control's random shapes of up to 1.3 million replicas.",
    unit="replicas the largest shape has at most",
    default_size=1_500_000,
    run=_run,
    peer="Cruise Control",
)
