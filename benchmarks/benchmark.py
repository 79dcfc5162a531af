"""What a benchmark is, what it is asked for, and what it returns."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

KAFKA = "kafka"
REGENT = "regent"
SIDES = (KAFKA, REGENT)
KAFKA_VERSION = "3.9.1"
TITLES = {KAFKA: f"Kafka {KAFKA_VERSION}", REGENT: "Regent"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for.

    Attributes:
        size: How much, in the benchmark's own unit.
        rounds: How often the two sides take turns.
        samples: Counted measurements of one side in one round.
        sides: Usually both; one of them alone gives figures and no comparison.
        timeout_s: Longest time that one measurement may take.
        idle_timeout_s: Longest wait, before each, for a machine that does nothing else.
    """

    size: int
    rounds: int
    samples: int
    sides: tuple[str, ...] = SIDES
    timeout_s: float = 300.0
    idle_timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Table:
    """Figures for people: a title, column heads, rows of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Result:
    """What came out.

    Attributes:
        seconds: By side, the counted measurements: less is better, their median is compared.
        tables: To be printed.
        notes: Sentences that belong to the figures.
        details: Everything else, for the JSON file.
        speedup: How many times as fast Regent is, where medians are not what is compared.
        headline: The last line, where nothing is compared.
    """

    seconds: Mapping[str, Sequence[float]]
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    speedup: float | None = None
    headline: str | None = None

    def median(self, side: str) -> float | None:
        """Median seconds of a side, None if it was not measured."""
        measured = self.seconds.get(side)
        return statistics.median(measured) if measured else None

    @property
    def ratio(self) -> float | None:
        """How many times as fast as Kafka Regent is; None unless both were measured."""
        if self.speedup is not None:
            return self.speedup
        kafka, regent = self.median(KAFKA), self.median(REGENT)
        return kafka / regent if kafka and regent else None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: As in `make bench NAME=...`.
        summary: One line for the list.
        unit: What the size counts.
        run: Raises BenchmarkError when a side does not complete.
        peer: Whose speed Regent's is compared with.
    """

    name: str
    summary: str
    unit: str
    default_size: int
    run: Callable[[Options, Console], Result]
    default_rounds: int = 3
    default_samples: int = 2
    peer: str = "Kafka"
