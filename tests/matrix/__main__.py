"""Runs flows on real brokers: ``python -m tests.matrix --versions 2.4.1 --flows crash bounce``."""

from __future__ import annotations

import argparse
import random
import sys

from sandbox import TESTED_VERSIONS
from tests.matrix.flows import FLOWS
from tests.matrix.runner import ENDINGS, Result, run_flows
from tests.matrix.table import table


def main() -> int:
    """The exit status says whether every flow ended as it has to."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--versions", nargs="+", default=list(TESTED_VERSIONS))
    parser.add_argument("--flows", nargs="+", choices=list(FLOWS), default=list(FLOWS))
    parser.add_argument(
        "--inter-broker-protocol", default="2.6", help="the highest, or: default, the releases' own"
    )
    parser.add_argument("--zookeeper", help="the release whose it is (default: the brokers' own)")
    parser.add_argument("--seed", type=int, help="for random moments (default: drawn)")
    parser.add_argument(
        "--kills", type=int, default=ENDINGS, help="of the leading replica, in replica-endings"
    )
    arguments = parser.parse_args()
    seed = random.randrange(1_000_000) if arguments.seed is None else arguments.seed
    protocol = arguments.inter_broker_protocol
    print(f"seed {seed}")
    results: list[Result] = []
    for version in arguments.versions:
        flows = [FLOWS[name] for name in arguments.flows if FLOWS[name].runs_on(version)]
        for result in run_flows(
            flows,
            version,
            seed=seed,
            inter_broker_protocol=None if protocol == "default" else protocol,
            zookeeper_version=arguments.zookeeper,
            endings=arguments.kills,
        ):
            print(_line(result), flush=True)
            results.append(result)
    print(f"\n{table(results)}")
    return 1 if any(result.problem for result in results) else 0


def _line(result: Result) -> str:
    where = f"{result.version} {result.flow}"
    if result.problem:
        return f"{where}: FAILED after {result.seconds:.1f} s:\n{result.problem}"
    line = (
        f"{where}: {result.seconds:.1f} s, {result.records} records, "
        f"longest time without an acknowledgement {result.longest_gap_ms} ms"
    )
    if result.longest_partition_gap_ms is not None:
        line += f", of any partition while all brokers were up {result.longest_partition_gap_ms} ms"
    return line


if __name__ == "__main__":
    sys.exit(main())
