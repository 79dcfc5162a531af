"""Standby: from the end of the controller until its warm standby has informed every broker.

Two Regents keep the warm standby. The one that leads is killed, frozen or stopped, at rest and
while leaders change ISRs; the clocks are those of the failover. Beside it Kafka's controller fails
over, as in that benchmark.
"""

import contextlib
import dataclasses
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from benchmarks import machine
from benchmarks.arena import QUIET_S, Arena, arena_of
from benchmarks.benchmark import KAFKA, REGENT, TITLES, Benchmark, Options, Result, Table
from benchmarks.cluster import PROTOCOL_VERSION, Cluster
from benchmarks.contenders import REGENT_CONTROLLER_ID, KafkaController
from benchmarks.failover import report_turn
from benchmarks.isr_changes import IsrChanges
from benchmarks.machine import disturbance
from benchmarks.measurement import ELECTED, Failovers
from benchmarks.measurement import Measurement as KafkaMeasurement
from benchmarks.replicas import Ending, Pair, Replica, pair_in
from benchmarks.verification import Verifier
from benchmarks.zookeeper import Election

AT_REST = 0
CHANGES_A_SECOND = 10_000
"""ISR changes while the one that leads ends."""

CHANGES_BEFORE_S = 3.0
"""So long they have gone on by then: leaders announce them every 2.5 s."""

FOLLOWED_A_SECOND = 1_000
"""ISR changes whose following is measured."""

OBSERVED_S = 10.0
"""So long a standby is looked at that has nothing to do but to follow."""

_EMPTY_CHROOT = "/empty"


@dataclass(frozen=True, slots=True)
class TakeOver:
    """One take-over; times are in seconds.

    Attributes:
        ending: What has happened to the one that led.
        changes: ISR changes a second meanwhile.
        election_s: From that to the election. The others are from the election on.
        changed: ISR changes from their beginning to the election.
        window_s: From the ending until all was quiet.
        cpu: Processor seconds by process in that time; "controller" is the one that has taken over,
            "others" include the one that led.
        peak_memory_mb: Of the one that has taken over, since it was started.
    """

    ending: str
    changes: int
    round: int
    election_s: float
    first_request_s: float
    first_partitions_s: float
    leader_and_isr_s: float
    complete_s: float
    changed: int
    window_s: float
    cpu: dict[str, float]
    peak_memory_mb: float


@dataclass(frozen=True, slots=True)
class StandingBy:
    """What a standby costs.

    Attributes:
        at_rest: Processor time, as a share of one core.
        following: The same at :data:`FOLLOWED_A_SECOND` ISR changes a second.
        bytes_per_partition: Memory beyond that of a standby of an empty cluster.
    """

    at_rest: float
    following: float
    bytes_per_partition: float


class TakeOvers:
    """Has one replica take over from the other, again and again."""

    def __init__(self, arena: Arena, pair: Pair, changes: IsrChanges) -> None:
        self._arena = arena
        self._pair = pair
        self._changes = changes
        self._verifier = Verifier(arena.cluster, arena.broker_epochs)

    def measure(self, ending: Ending, changes_a_second: int, number: int) -> TakeOver:
        """One take-over. The one that led stands by afterwards."""
        arena, pair, changes = self._arena, self._pair, self._changes
        successor = pair.standby
        arena.stubs.wait_until_quiet(quiet_s=QUIET_S, timeout_s=arena.options.timeout_s)
        arena.await_idle_machine()
        with arena.blaming(successor):
            if changes_a_second:
                changes.start(changes_a_second)
                time.sleep(CHANGES_BEFORE_S)
            arena.stubs.forget()
            before = arena.usage(successor)
            election = self._elect(ending)
            arena.await_informed(successor)
            changes.stop()
            self._wait_for_quiet()
            after = arena.usage(successor)
            versions = changes.versions(election.zxid)
            delivery = self._verifier.verify(election, arena.stubs.take(), versions)
        measured = TakeOver(
            ending=ending.value,
            changes=changes_a_second,
            round=number,
            election_s=(election.elected_at - election.triggered_at) / 1e9,
            first_request_s=_since(election, delivery.first_request_at),
            first_partitions_s=_since(election, delivery.first_partitions_at),
            leader_and_isr_s=_since(election, delivery.leader_and_isr_at),
            complete_s=_since(election, delivery.complete_at),
            changed=sum(versions.oldest.values()),
            window_s=(after.at - before.at) / 1e9,
            cpu=after.since(before),
            peak_memory_mb=machine.peak_memory_mb(successor.process.pid),
        )
        pair.change_places()
        return measured

    def _elect(self, ending: Ending) -> Election:
        pair = self._pair
        triggered_at = ending.of(pair.active.process)
        return self._arena.session.await_election(
            pair.standby.controller_id,
            triggered_at=triggered_at,
            timeout_s=self._arena.options.timeout_s,
            instead_of=pair.active.controller_id,
        )

    def _wait_for_quiet(self) -> None:
        """Without the one that led: if it is frozen, a request of it may be on its way for ever."""
        self._pair.active.process.kill()
        arena = self._arena
        arena.stubs.wait_until_quiet(quiet_s=QUIET_S, timeout_s=arena.options.timeout_s)


def _since(election: Election, at: int) -> float:
    return (at - election.elected_at) / 1e9


def run(options: Options, console: Console) -> Result:
    """Kafka's controller and the replicas, in turns."""
    cluster = Cluster(options.size)
    failovers: list[KafkaMeasurement] = []
    take_overs: list[TakeOver] = []
    costs: list[StandingBy] = []
    with arena_of(options, cluster, console) as arena, contextlib.ExitStack() as stack:
        changes = stack.enter_context(IsrChanges(arena.connect_string, cluster))
        kafka = KafkaController(arena.connect_string, protocol_version=PROTOCOL_VERSION)
        stack.callback(kafka.close)
        turns = Failovers(arena, changes.versions_now)
        for number in range(options.rounds + 1):
            if KAFKA in options.sides:
                turn = turns.turn(kafka, number, options.samples if number else 1)
                report_turn(console, turn)
                failovers += turn
            if REGENT in options.sides and number:
                with pair_in(arena) as pair:
                    if not costs:
                        costs.append(_cost_of_standing_by(arena, pair.standby, changes))
                    for measured in _round(TakeOvers(arena, pair, changes), options, number):
                        take_overs.append(measured)
                        _report(console, measured)
    return _result(failovers, take_overs, costs)


def _round(take_overs: TakeOvers, options: Options, number: int) -> Iterator[TakeOver]:
    for changes, ending in itertools.product((AT_REST, CHANGES_A_SECOND), Ending):
        for _ in range(options.samples):
            yield take_overs.measure(ending, changes, number)


def _report(console: Console, m: TakeOver) -> None:
    console.print(
        f"round {m.round}, {m.ending}, {_meanwhile(m.changes)}: elected after {m.election_s:.3f} s,"
        f" all answered {m.complete_s:.3f} s later"
    )


def _meanwhile(changes: int) -> str:
    return f"{changes:,} changes a second" if changes else "at rest"


def _cost_of_standing_by(arena: Arena, standby: Replica, changes: IsrChanges) -> StandingBy:
    pid = standby.process.pid
    arena.await_idle_machine()
    at_rest = _share_of_a_core(pid)
    memory = machine.resident_bytes(pid) - _memory_without_a_cluster(arena)
    changes.start(FOLLOWED_A_SECOND)
    try:
        following = _share_of_a_core(pid)
    finally:
        changes.stop()
    standby.wait_until_prepared(timeout_s=arena.options.timeout_s)
    return StandingBy(at_rest, following, memory / arena.cluster.size)


def _share_of_a_core(pid: int) -> float:
    began, before = time.monotonic(), machine.cpu_seconds(pid)
    time.sleep(OBSERVED_S)
    return (machine.cpu_seconds(pid) - before) / (time.monotonic() - began)


def _memory_without_a_cluster(arena: Arena) -> int:
    """Of a standby whose cluster has no brokers and no topics."""
    connect_string = arena.zookeeper.connect_string + _EMPTY_CHROOT
    with contextlib.ExitStack() as stack:
        first, second = (
            Replica(connect_string, REGENT_CONTROLLER_ID + number, missing_cluster="create")
            for number in range(2)
        )
        for replica in (first, second):
            stack.callback(replica.close)
        Pair(arena, first, second).start()
        return machine.resident_bytes(second.process.pid)


def _result(
    failovers: Sequence[KafkaMeasurement],
    take_overs: Sequence[TakeOver],
    costs: Sequence[StandingBy],
) -> Result:
    kafka = [m for m in failovers if m.round and m.kind == ELECTED]
    compared = [m for m in take_overs if m.ending == Ending.SIGKILL.value and m.changes == AT_REST]
    seconds = {KAFKA: [m.complete_s for m in kafka], REGENT: [m.complete_s for m in compared]}
    tables = []
    if kafka:
        tables.append(_kafka_table(kafka))
    if take_overs:
        tables.append(_take_over_table(take_overs))
    tables += [_cost_table(cost) for cost in costs]
    notes = [
        "Compared are the medians of 'election to all answered': of Kafka's re-elections as in"
        " `failover`, and of Regent's take-overs after SIGKILL at rest. Every request was decoded,"
        " and compared with what leaders had written.",
        f"All brokers have inter.broker.protocol.version {PROTOCOL_VERSION}.",
    ]
    if kafka:
        notes.append(disturbance(TITLES[KAFKA], kafka))
    if take_overs:
        notes.append(disturbance(f"{TITLES[REGENT]} (and what ended)", take_overs))
    return Result(
        seconds={side: some for side, some in seconds.items() if some},
        tables=tables,
        notes=notes,
        details={
            "failovers": [dataclasses.asdict(m) for m in failovers],
            "take_overs": [dataclasses.asdict(m) for m in take_overs],
            "standing_by": [dataclasses.asdict(cost) for cost in costs],
        },
    )


def _kafka_table(kafka: Sequence[KafkaMeasurement]) -> Table:
    shown: dict[str, Callable[[KafkaMeasurement], float]] = {
        "election to first request": lambda m: m.first_request_s,
        "election to all answered": lambda m: m.complete_s,
        "trigger to all answered": lambda m: m.election_s + m.complete_s,
        "processor time of the controller": lambda m: m.cpu["controller"],
        "processor time of ZooKeeper": lambda m: m.cpu["ZooKeeper"],
    }
    return Table(
        f"{TITLES[KAFKA]}: re-elections, medians in seconds",
        ("", "median", "fastest", "slowest"),
        [(name, *_median_and_ends([figure(m) for m in kafka])) for name, figure in shown.items()],
    )


def _take_over_table(take_overs: Sequence[TakeOver]) -> Table:
    shown: dict[str, Callable[[TakeOver], float]] = {
        "ending to election": lambda m: m.election_s,
        "election to first request": lambda m: m.first_request_s,
        "election to first partitions": lambda m: m.first_partitions_s,
        "election to last LeaderAndIsr answered": lambda m: m.leader_and_isr_s,
        "election to all answered": lambda m: m.complete_s,
        "ending to all answered": lambda m: m.election_s + m.complete_s,
        "changes until the election": lambda m: m.changed,
        "processor time of the successor": lambda m: m.cpu["controller"],
        "processor time of ZooKeeper": lambda m: m.cpu["ZooKeeper"],
        "processor time of the stub brokers": lambda m: m.cpu["stub brokers"],
        "processor time of the benchmark": lambda m: m.cpu["benchmark"],
        "peak memory of the successor, MB": lambda m: m.peak_memory_mb,
    }
    situations: dict[tuple[str, int], list[TakeOver]] = {}
    for m in take_overs:
        situations.setdefault((m.ending, m.changes), []).append(m)
    rows = [
        (f"{ending}, {_meanwhile(changes)}", name, *_median_and_ends([figure(m) for m in some]))
        for (ending, changes), some in situations.items()
        for name, figure in shown.items()
    ]
    return Table(
        f"{TITLES[REGENT]}: take-overs, seconds unless it says otherwise",
        ("what happens", "", "median", "fastest", "slowest"),
        rows,
    )


def _median_and_ends(figures: Sequence[float]) -> tuple[str, str, str]:
    return (
        f"{statistics.median(figures):.3f}",
        f"{min(figures):.3f}",
        f"{max(figures):.3f}",
    )


def _cost_table(cost: StandingBy) -> Table:
    return Table(
        "What the standby costs",
        ("", ""),
        [
            ("processor time at rest", f"{cost.at_rest:.2%} of a core"),
            (f"... at {FOLLOWED_A_SECOND:,} changes a second", f"{cost.following:.1%} of a core"),
            ("memory for each partition", f"{cost.bytes_per_partition:,.0f} bytes"),
        ],
    )


BENCHMARK = Benchmark(
    name="standby",
    summary="From the end of a controller until its warm standby has informed every broker.",
    unit="partitions",
    default_size=100_000,
    run=run,
    default_samples=1,
)
