"""`python -m benchmarks.plan_one SHAPE`: plan for one shape, print the figures as JSON."""

import json
import resource
import sys
import time

from benchmarks.plan_shapes import SHAPES, generate
from regent_rebalance.goals import Goals
from regent_rebalance.planner import make_plan


def main(name: str) -> None:
    """Plan once: what is loaded and compiled on the way counts."""
    shape = next(shape for shape in SHAPES if shape.name == name)
    snapshot = generate(shape)
    before = time.process_time()
    plan = make_plan(snapshot, Goals())
    cpu_s = time.process_time() - before
    s = plan.summary
    print(
        json.dumps(
            {
                "shape": name,
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
                "goals_met": s.goals_met,
                "replica_deviation": [s.before[0].deviation, s.after[0].deviation],
                "leader_deviation": [s.before[1].deviation, s.after[1].deviation],
                "hash": plan.hash,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
