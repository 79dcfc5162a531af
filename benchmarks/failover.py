"""Failover: from a controller's election until every broker has answered what it has to know.

The clock starts with the time that ZooKeeper gave the election's transaction, and ends with the
last byte of the last answer that a broker had to give: each has been sent an UpdateMetadata of all
partitions and a LeaderAndIsr of each of its replicas.
"""

import dataclasses
import statistics
from collections.abc import Callable, Sequence

from rich.console import Console

from benchmarks.arena import arena_of, contenders_in
from benchmarks.benchmark import TITLES, Benchmark, Options, Result, Table
from benchmarks.cluster import PROTOCOL_VERSION, Cluster
from benchmarks.contenders import KAFKA_HEAP_MB
from benchmarks.machine import disturbance
from benchmarks.measurement import ELECTED, Failovers, Measurement


def run(options: Options, console: Console) -> Result:
    """Have both sides elected in turns."""
    cluster = Cluster(options.size)
    measurements: list[Measurement] = []
    with arena_of(options, cluster, console) as arena, contenders_in(arena) as contenders:
        failovers = Failovers(arena)
        for number in range(options.rounds + 1):
            for contender in contenders:
                turn = failovers.turn(contender, number, options.samples if number else 1)
                measurements += turn
                report_turn(console, turn)
    return _result(measurements)


def report_turn(console: Console, turn: Sequence[Measurement]) -> None:
    """Print what was measured of one side."""
    for m in turn:
        console.print(
            f"round {m.round}, {TITLES[m.side]}, {m.kind}: {m.complete_s:.2f} s"
            f" (elected after {m.election_s:.2f} s)"
        )


def _result(measurements: Sequence[Measurement]) -> Result:
    counted = {
        side: [m for m in measurements if m.side == side and m.round and m.kind == ELECTED]
        for side in dict.fromkeys(m.side for m in measurements)
    }
    notes = [
        f"All brokers have inter.broker.protocol.version {PROTOCOL_VERSION}: LeaderAndIsr 4,"
        " UpdateMetadata 6 on both sides.",
        f"Kafka's controller is a broker without replicas (heap {KAFKA_HEAP_MB} MiB, G1), frozen"
        " while Regent is measured, and the other way round.",
        "Compared are the medians of 'all answered' over the re-elections of rounds 1 and later;"
        " every request was decoded and checked.",
    ]
    notes += [disturbance(TITLES[side], some) for side, some in counted.items()]
    return Result(
        seconds={side: [m.complete_s for m in some] for side, some in counted.items()},
        tables=[
            _every_failover(measurements),
            _medians(counted),
            *(_steps(side, some) for side, some in counted.items()),
        ],
        notes=notes,
        details={"failovers": [dataclasses.asdict(m) for m in measurements]},
    )


def _every_failover(measurements: Sequence[Measurement]) -> Table:
    return Table(
        "Every failover, in seconds from the election on",
        ("controller", "round", "after", "elected", "first request", "all answered"),
        [
            (
                TITLES[m.side],
                str(m.round),
                m.kind,
                f"-{m.election_s:.2f}",
                f"{m.first_request_s:.2f}",
                f"{m.complete_s:.2f}",
            )
            for m in measurements
        ],
    )


def _medians(counted: dict[str, list[Measurement]]) -> Table:
    """The same figures for both sides, taken outside of them."""
    figures: list[tuple[str, Callable[[Measurement], float]]] = [
        ("trigger to election, s", lambda m: m.election_s),
        ("election to first request, s", lambda m: m.first_request_s),
        ("election to first partitions, s", lambda m: m.first_partitions_s),
        ("election to last LeaderAndIsr answered, s", lambda m: m.leader_and_isr_s),
        ("election to all answered, s", lambda m: m.complete_s),
        ("trigger to all answered, s", lambda m: m.election_s + m.complete_s),
        ("requests, MB", lambda m: m.request_mb),
        ("processor time of the controller, s", lambda m: m.cpu["controller"]),
        ("processor time of ZooKeeper, s", lambda m: m.cpu["ZooKeeper"]),
        ("processor time of the stub brokers, s", lambda m: m.cpu["stub brokers"]),
        ("processor time of all other processes, s", lambda m: m.cpu["others"]),
        ("peak memory of the controller, MB", lambda m: m.peak_memory_mb),
    ]
    rows = [
        (name, *(f"{statistics.median(map(figure, some)):.2f}" for some in counted.values()))
        for name, figure in figures
    ]
    fastest = [f"{min(m.complete_s for m in some):.2f}" for some in counted.values()]
    slowest = [f"{max(m.complete_s for m in some):.2f}" for some in counted.values()]
    rows.insert(5, ("    of these the fastest and", *fastest))
    rows.insert(6, ("    the slowest", *slowest))
    return Table(
        "Medians of the counted failovers", ("", *(TITLES[side] for side in counted)), rows
    )


def _steps(side: str, counted: Sequence[Measurement]) -> Table:
    """What the controller's own log says."""
    names = dict.fromkeys(name for m in counted for name in m.steps)
    return Table(
        f"Steps in the log of {TITLES[side]}, medians in seconds from the election on",
        ("step", "at"),
        [
            (name, f"{statistics.median(m.steps[name] for m in counted if name in m.steps):.2f}")
            for name in names
        ],
    )


BENCHMARK = Benchmark(
    name="failover",
    summary="From a controller's election to the last control request answered.",
    unit="partitions",
    default_size=100_000,
    run=run,
)
