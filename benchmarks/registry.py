"""Which benchmarks there are. A new one is a module with a `BENCHMARK`, and its place in here."""

from benchmarks import (
    alter_partition,
    broker_crash,
    controlled_shutdown,
    events,
    failover,
    kafkatopics,
    plan,
    plan_on_spark,
    reassignment,
    standby,
    topics,
)
from benchmarks.benchmark import Benchmark

BENCHMARKS: dict[str, Benchmark] = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (
        failover,
        standby,
        broker_crash,
        controlled_shutdown,
        alter_partition,
        topics,
        reassignment,
        kafkatopics,
        plan,
        plan_on_spark,
        events,
    )
}
"""Every benchmark by name."""
