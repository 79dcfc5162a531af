"""Replays a seed, or tries many: ``python -m tests.simulation --seed 7 --steps 1000 --trace``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.simulation import DEFAULT_STEPS, SeedFailedError, simulate


def main() -> int:
    """The exit status says whether all seeds hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="steps with faults")
    parser.add_argument("--trace", action="store_true", help="print every line")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    arguments = parser.parse_args()
    began, failed, steps = time.monotonic(), [], 0
    faults: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        try:
            finished = simulate(
                seed, steps=arguments.steps, echo=print if arguments.trace else None
            )
        except SeedFailedError as error:
            failed.append(seed)
            print(str(error).rpartition("\n\n")[0].rpartition("\n\n")[2], f"(seed {seed})")
            if not arguments.keep_going:
                print(error)
                break
            continue
        steps += finished.steps
        faults += finished.faults
        if arguments.seeds == 1:
            print(f"seed {seed}: {finished}")
    took = time.monotonic() - began
    for name, count in faults.most_common():
        print(f"{count:>9} {name}")
    print(f"{arguments.seeds} seeds, {steps} steps with {faults.total()} faults in {took:.1f} s")
    print(f"failed: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
