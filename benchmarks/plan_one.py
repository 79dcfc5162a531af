"""`python -m benchmarks.plan_one SHAPE KIND`: plan for one shape, print the figures as JSON.

The kind is "counts" (racks, replicas, leaders), "moves" (disks, networks and topics, too),
"bytes" (the same with bytes as the cost), or "generate" (by Kafka's tool).
"""

import json
import resource
import sys
import time
from typing import Any

from benchmarks.plan_generate import cost_of, generate_assignment
from benchmarks.plan_shapes import SHAPES, Shape, generate
from regent_rebalance.goals import ALL_GOALS, Goals
from regent_rebalance.planner import make_plan

KINDS = {
    "counts": Goals(),
    "moves": Goals(names=ALL_GOALS, resource_balance=1.05),
    "bytes": Goals(names=ALL_GOALS, resource_balance=1.05, bytes_share=1.0),
}
"""Goals by kind. Cruise Control was timed with the threshold 1.05 for resources."""


GENERATE = "generate"
_TIMEOUT_S = 600.0


def main(name: str, kind: str) -> None:
    """Plan once: what is loaded and compiled on the way counts."""
    shape = next(shape for shape in SHAPES if shape.name == name)
    figures = _generated(shape) if kind == GENERATE else _planned(shape, kind)
    print(json.dumps({"shape": name, "kind": kind, **figures}))


def _generated(shape: Shape) -> dict[str, Any]:
    snapshot, goals = generate(shape), KINDS["moves"]
    proposal = generate_assignment(snapshot, goals, timeout_s=_TIMEOUT_S)
    cost = cost_of(snapshot, goals, proposal)
    return {
        "cpu_s": proposal.cpu_s,
        "peak_mib": proposal.peak_mib,
        "moves": cost.moves,
        "bytes": cost.bytes,
        "leader_changes": cost.leader_changes,
        "missed": cost.missed,
        "replica_deviation": cost.replicas.deviation,
        "leader_deviation": cost.leaders.deviation,
    }


def _planned(shape: Shape, kind: str) -> dict[str, Any]:
    snapshot = generate(shape)
    before = time.process_time()
    plan = make_plan(snapshot, KINDS[kind])
    cpu_s = time.process_time() - before
    s = plan.summary
    return {
        "cpu_s": cpu_s,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "moves": s.moves,
        "bound": s.bounds.moves,
        "gap": s.gap,
        "bytes": s.bytes,
        "bytes_bound": s.bounds.bytes,
        "leader_changes": s.leader_changes,
        "leader_changes_bound": s.leader_changes_bound,
        "method": s.method,
        "missed": sum(not goal.met for goal in s.goals),
        "replica_deviation": [s.before[0].deviation, s.after[0].deviation],
        "leader_deviation": [s.before[1].deviation, s.after[1].deviation],
        "hash": plan.hash,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
