"""Events: what it costs the controller that one thing changes, in clusters of growing size.

The core runs with its event queue, its gauges and its view over a ZooKeeper in the same process and
channels that lead nowhere; the time of that ZooKeeper is taken off. So the figures are the
controller's own work, from the event in the queue to the new view: they must not grow with the
cluster.
"""

import asyncio
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from rich.console import Console

from benchmarks import machine
from benchmarks.benchmark import REGENT, Benchmark, Options, Result, Table
from benchmarks.event_bench import Bench
from benchmarks.happenings import Happenings

SIZES = (10_000, 100_000)
"""Clusters that are measured besides the one that was asked for, if they are smaller."""

FAILOVER = "failover and first view, once"

_EVENTS: dict[str, Callable[[Happenings], Awaitable[float]]] = {
    "ISR change of one partition": Happenings.isr_change,
    "creation of a topic, 1 partition": Happenings.creation,
    "growth of a topic by 1 partition": Happenings.growth,
    "deletion of a topic, 1 partition": Happenings.deletion,
    "command to create a topic": Happenings.command,
    "stop of a broker with 10 replicas": Happenings.stop,
    "preferred election of 1 partition": Happenings.preferred_election,
    "check of the balance of leaders": Happenings.balance_check,
    "start of a reassignment of 1 partition": Happenings.reassignment_begins,
    "end of a reassignment of 1 partition": Happenings.reassignment_ends,
    "failed log directory, 10 replicas": Happenings.log_dir_failure,
    "answer to UpdateMetadata": Happenings.update_metadata_answer,
    "answer to LeaderAndIsr, 1 partition": Happenings.leader_and_isr_answer,
    "view of one topic, 50 partitions": Happenings.publication,
    "start of a broker with 10 replicas": Happenings.start,
}


def run(options: Options, console: Console) -> Result:
    """Measure each kind of event in each size of cluster."""
    sizes = [*(size for size in SIZES if size < options.size), options.size]
    samples = options.rounds * options.samples
    medians: dict[int, dict[str, float]] = {}
    memory_mb: dict[int, float] = {}
    for size in sizes:
        began = time.monotonic()
        medians[size] = asyncio.run(_measure(size, samples))
        memory_mb[size] = machine.peak_memory_mb(os.getpid())
        gc.collect()
        console.print(f"{size:,} partitions: {time.monotonic() - began:.1f} s")
    return Result(
        seconds={REGENT: [medians[options.size][name] / 1000 for name in _EVENTS]},
        tables=[
            Table(
                f"Processor time of one event, medians of {samples}, milliseconds",
                ("partitions", *(f"{size:,}" for size in sizes)),
                [
                    *_rows(medians, (*_EVENTS, FAILOVER)),
                    ("peak memory of the process, MB", *(f"{memory_mb[s]:.0f}" for s in sizes)),
                ],
            )
        ],
        notes=list(_notes()),
        details={
            "milliseconds": {str(size): found for size, found in medians.items()},
            "memory_mb": {str(size): found for size, found in memory_mb.items()},
        },
    )


def _rows(
    medians: Mapping[int, Mapping[str, float]], names: Iterable[str]
) -> Iterator[tuple[str, ...]]:
    for name in names:
        yield name, *(f"{found[name]:.2f}" for found in medians.values())


def _notes() -> Iterator[str]:
    yield "The controller's own work, from the event to the new view, without ZooKeeper."
    yield (
        "A failover, and memory, grow with the cluster: here without encoding and sending, and with"
        " the benchmark's own data."
    )
    yield (
        "Two rows hold something that grows by its nature: topics appear in a list of all of them"
        " (ZooKeeper gives no difference), and a broker that starts is sent every partition."
    )


async def _measure(size: int, samples: int) -> dict[str, float]:
    bench = Bench(size)
    bench.fill()
    medians: dict[str, float] = {}
    happenings = Happenings(bench)
    async with bench.running():
        for name, happen in _EVENTS.items():
            await happen(happenings)
            medians[name] = statistics.median([await happen(happenings) for _ in range(samples)])
    medians[FAILOVER] = bench.failover_ms
    return medians


BENCHMARK = Benchmark(
    name="events",
    summary="What one event costs in clusters of growing size.",
    unit="partitions in the largest cluster",
    default_size=1_000_000,
    run=run,
    default_rounds=3,
    default_samples=10,
)
