"""Failover: from a controller's election until every broker has answered what it has to know.

The clock starts with the time that ZooKeeper gave the election's transaction, and ends with the
last byte of the last answer that a broker had to give: each has been sent an UpdateMetadata of all
partitions and a LeaderAndIsr of each of its replicas.
"""

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence

from rich.console import Console

from benchmarks import machine
from benchmarks.arena import CHROOT, Arena
from benchmarks.benchmark import KAFKA, SIDES, Benchmark, Options, Result, Table
from benchmarks.cluster import BROKERS, PROTOCOL_VERSION, Cluster
from benchmarks.contenders import (
    KAFKA_HEAP_MB,
    KAFKA_VERSION,
    Contender,
    KafkaController,
    RegentController,
)
from benchmarks.measurement import ELECTED, Measurement
from sandbox import ZooKeeper
from sandbox.java import TUNED_FOR_THROUGHPUT

ZOOKEEPER_HEAP_MB = 2048
_MUCH = 0.3
_TITLES = {"kafka": f"Kafka {KAFKA_VERSION}", "regent": "Regent"}


def run(options: Options, console: Console) -> Result:
    """Have both sides elected in turns."""
    cluster = Cluster(options.size)
    with contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(
            ZooKeeper(heap_mb=ZOOKEEPER_HEAP_MB, java_options=TUNED_FOR_THROUGHPUT)
        )
        arena = Arena(options, cluster, zookeeper)
        stack.enter_context(arena.stubs)
        stack.enter_context(arena.session)
        began = time.monotonic()
        znodes = arena.prepare()
        console.print(
            f"{cluster.size:,} partitions of {len(cluster.topics):,} topics on {BROKERS} stub"
            f" brokers: {znodes:,} znodes in {time.monotonic() - began:.1f} s"
        )
        connect = zookeeper.connect_string + CHROOT
        contenders = [_contender(side, connect) for side in SIDES if side in options.sides]
        for contender in contenders:
            stack.callback(contender.close)
        measurements: list[Measurement] = []
        for number in range(options.rounds + 1):
            for contender in contenders:
                turn = arena.turn(contender, number, options.samples if number else 1)
                measurements += turn
                _report_turn(console, turn)
    return _result(measurements)


def _contender(side: str, connect: str) -> Contender:
    if side == KAFKA:
        return KafkaController(connect, protocol_version=PROTOCOL_VERSION)
    return RegentController(connect)


def _report_turn(console: Console, turn: Sequence[Measurement]) -> None:
    for m in turn:
        console.print(
            f"round {m.round}, {_TITLES[m.side]}, {m.kind}: {m.complete_s:.2f} s"
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
    notes += [_disturbance(side, some) for side, some in counted.items()]
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
                _TITLES[m.side],
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
        "Medians of the counted failovers", ("", *(_TITLES[side] for side in counted)), rows
    )


def _disturbance(side: str, counted: Sequence[Measurement]) -> str:
    """How much else the machine did meanwhile: above some percents the figures are rough."""
    capacity = sum(m.window_s for m in counted) * machine.cores()
    share = sum(m.cpu["others"] for m in counted) / capacity
    rough = " That is much: these figures are rough." if share > _MUCH else ""
    return (
        f"Other processes used {share:.0%} of the processors while {_TITLES[side]} was measured."
        + rough
    )


def _steps(side: str, counted: Sequence[Measurement]) -> Table:
    """What the controller's own log says."""
    names = dict.fromkeys(name for m in counted for name in m.steps)
    return Table(
        f"Steps in the log of {_TITLES[side]}, medians in seconds from the election on",
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
