"""Compares how two controllers follow a change of the cluster that they are in charge of.

A benchmark says what happens and how it is judged; the turns, the tables and the comparison are
common. Each measurement begins with the cluster as it was, and a controller that has just been
elected and has sent everything.
"""

import abc
import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rich.console import Console

from benchmarks.arena import Arena, Usage, arena_of, contenders_in
from benchmarks.benchmark import KAFKA, REGENT, TITLES, Options, Result, Table
from benchmarks.cluster import Cluster
from benchmarks.contenders import KAFKA_HEAP_MB, Contender
from benchmarks.machine import disturbance
from benchmarks.zookeeper import Election

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Figures:
    """What one measurement has given.

    Attributes:
        seconds: What is compared.
        rows: Parts of it and figures besides, by what they are called in the table.
    """

    seconds: float
    rows: Mapping[str, float]


class Change(abc.ABC, Generic[S]):
    """Something that happens to a cluster. `S` is what was seen while it did."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    @abc.abstractmethod
    def reset(self) -> None:
        """Bring the cluster to where it was; an election follows."""

    def prepare(self, election: Election) -> None:
        """Get ready, before the clock starts. What brokers were sent by the failover is dropped."""
        self.arena.stubs.forget()

    @abc.abstractmethod
    def happen(self, contender: Contender) -> S:
        """Let it happen and wait until the controller has followed. Nothing is decoded here."""

    @abc.abstractmethod
    def judge(self, seen: S, election: Election) -> Figures:
        """Compare what brokers were sent with ZooKeeper.

        Raises:
            BenchmarkError: something is missing or wrong: there is no figure.
        """


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of one side; round 0 warms up."""

    side: str
    round: int
    figures: Figures
    cpu: dict[str, float]
    window_s: float


@dataclass(frozen=True, slots=True)
class Setting:
    """What a benchmark of a change is made of.

    Attributes:
        cluster: To be filled into ZooKeeper.
        change: What happens, in an arena.
        compared: What the seconds are, for people.
        has_followers: Whether followers get in sync by themselves.
        asks_controller: Whether brokers send the controller requests.
    """

    cluster: Cluster
    change: Callable[[Arena], Change[Any]]
    compared: str
    has_followers: bool = False
    asks_controller: bool = False


def compare(setting: Setting, options: Options, console: Console) -> Result:
    """Let both sides follow the change, in turns."""
    measurements: list[Measurement] = []
    with (
        arena_of(options, setting.cluster, console, has_followers=setting.has_followers) as arena,
        contenders_in(arena, is_asked=setting.asks_controller) as contenders,
    ):
        change = setting.change(arena)
        for number in range(options.rounds + 1):
            for contender in contenders:
                for _ in range(options.samples if number else 1):
                    measured = _measure(arena, change, contender, number)
                    measurements.append(measured)
                    console.print(
                        f"round {number}, {TITLES[contender.name]}:"
                        f" {measured.figures.seconds:.3f} s"
                    )
                arena.rest(contender)
    return _result(setting, measurements)


def _measure(arena: Arena, change: Change[S], contender: Contender, number: int) -> Measurement:
    with arena.blaming(contender):
        change.reset()
        arena.stubs.forget()
        election = arena.elect(contender)
        arena.await_failover(contender)
        arena.await_idle_machine()
        change.prepare(election)
        before = arena.usage(contender)
        seen = change.happen(contender)
        after = arena.usage(contender)
        arena.session.require_controller(election)
        figures = change.judge(seen, election)
    return Measurement(
        contender.name, number, figures, after.since(before), _seconds(before, after)
    )


def _seconds(before: Usage, after: Usage) -> float:
    return (after.at - before.at) / 1e9


def _result(setting: Setting, measurements: Sequence[Measurement]) -> Result:
    counted = {
        side: [m for m in measurements if m.side == side and m.round]
        for side in dict.fromkeys(m.side for m in measurements)
    }
    notes = [
        f"Compared are the medians of '{setting.compared}' over rounds 1 and later. What brokers"
        " were sent was decoded, and compared with ZooKeeper.",
        f"All brokers have inter.broker.protocol.version {setting.cluster.protocol_version}."
        f" Kafka's controller is a broker without replicas (heap {KAFKA_HEAP_MB} MiB, G1).",
    ]
    notes += [disturbance(TITLES[side], some) for side, some in counted.items()]
    return Result(
        seconds={side: [m.figures.seconds for m in some] for side, some in counted.items()},
        tables=[_every_measurement(setting, measurements), _medians(setting, counted)],
        notes=notes,
        details={"measurements": [dataclasses.asdict(m) for m in measurements]},
    )


def _every_measurement(setting: Setting, measurements: Sequence[Measurement]) -> Table:
    return Table(
        "Every measurement, seconds",
        ("controller", "round", setting.compared),
        [(TITLES[m.side], str(m.round), f"{m.figures.seconds:.3f}") for m in measurements],
    )


def _medians(setting: Setting, counted: Mapping[str, Sequence[Measurement]]) -> Table:
    rows: dict[str, Callable[[Measurement], float]] = {
        setting.compared: lambda m: m.figures.seconds
    }
    for name in next(iter(counted.values()))[0].figures.rows:
        rows[name] = _row(name)
    for name in ("controller", "ZooKeeper", "stub brokers", "benchmark", "others"):
        rows[f"processor time of the {name}"] = _processor_time(name)
    return Table(
        "Medians of the counted rounds; seconds, unless it says otherwise",
        ("", *(TITLES[side] for side in counted), *(("ratio",) if len(counted) > 1 else ())),
        [(name, *_columns(counted, figure)) for name, figure in rows.items()],
    )


def _row(name: str) -> Callable[[Measurement], float]:
    return lambda m: m.figures.rows[name]


def _processor_time(name: str) -> Callable[[Measurement], float]:
    return lambda m: m.cpu[name]


def _columns(
    counted: Mapping[str, Sequence[Measurement]], figure: Callable[[Measurement], float]
) -> list[str]:
    medians = {side: statistics.median(map(figure, some)) for side, some in counted.items()}
    shown = [f"{value:.2f}" for value in medians.values()]
    if len(counted) > 1:
        shown.append(f"{medians[KAFKA] / medians[REGENT]:.1f}" if medians[REGENT] else "")
    return shown
