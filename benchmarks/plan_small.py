"""Plans of small clusters beside the best there is and beside Kafka's own tool, as a table."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console

from benchmarks.benchmark import KAFKA_VERSION, Table
from benchmarks.plan_cases import Case, cases
from benchmarks.plan_generate import cost_of, generate_assignment
from benchmarks.plan_optimum import optimum_of
from regent_rebalance.planner import make_plan

_COLUMNS = (
    "cluster", "brokers", "partitions", "CPU s", "moves", "bound", "optimum", "MILP s", "missed",
    "generate", "missed",
)  # fmt: skip
_SOLVED_S = 120.0
"""Longest time for the solver: what it has not proved by then it mostly never does."""

NOTES = (
    f"generate: new replicas by kafka-reassign-partitions --generate of Kafka {KAFKA_VERSION}, and "
    "the goals that it misses; optimum: of a mixed-integer program, which SCIP solves; -: no plan "
    "meets all goals; ?: not proved.",
)


def measure_small(console: Console, *, with_peer: bool, timeout_s: float) -> list[dict[str, Any]]:
    """The figures of each small cluster."""
    measured = []
    for case in cases():
        figures = _measured(case, with_peer=with_peer, timeout_s=timeout_s)
        console.print(f"{case.name}: {figures['cpu_s']:.2f} s", markup=False)
        measured.append(figures)
    return measured


def small_table(measured: list[dict[str, Any]]) -> Table:
    """What was measured, for people."""
    return Table("Small published clusters", _COLUMNS, [_row(figures) for figures in measured])


def _measured(case: Case, *, with_peer: bool, timeout_s: float) -> dict[str, Any]:
    before = time.process_time()
    summary = make_plan(case.snapshot, case.goals).summary
    cpu_s = time.process_time() - before
    best = optimum_of(case.snapshot, case.goals, timeout_s=min(timeout_s, _SOLVED_S))
    figures: dict[str, Any] = {
        "cluster": case.name,
        "brokers": len(case.snapshot.brokers),
        "partitions": case.snapshot.partitions,
        "cpu_s": cpu_s,
        "moves": summary.moves,
        "bound": summary.bounds.moves,
        "missed": sum(not goal.met for goal in summary.goals),
        "optimum": best.moves if best.proved else None,
        "optimum_proved": best.proved,
        "optimum_cpu_s": best.cpu_s,
    }
    if with_peer:
        proposal = generate_assignment(case.snapshot, case.goals, timeout_s=timeout_s)
        cost = cost_of(case.snapshot, case.goals, proposal)
        figures |= {"generate_moves": cost.moves, "generate_missed": len(cost.missed)}
    return figures


def _row(figures: dict[str, Any]) -> list[str]:
    best = figures["optimum"]
    if best is None:
        best = "-" if figures["optimum_proved"] else "?"
    return [
        figures["cluster"],
        str(figures["brokers"]),
        str(figures["partitions"]),
        f"{figures['cpu_s']:.2f}",
        str(figures["moves"]),
        str(figures["bound"]),
        str(best),
        f"{figures['optimum_cpu_s']:.1f}",
        str(figures["missed"]),
        str(figures.get("generate_moves", "")),
        str(figures.get("generate_missed", "")),
    ]
