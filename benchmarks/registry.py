"""Which benchmarks there are. A new one is a module with a `BENCHMARK`, and its place in here."""

from benchmarks import events, failover
from benchmarks.benchmark import Benchmark

BENCHMARKS: dict[str, Benchmark] = {
    module.BENCHMARK.name: module.BENCHMARK for module in (failover, events)
}
"""Every benchmark by name."""
