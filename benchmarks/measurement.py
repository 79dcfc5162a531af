"""Measures one failover after the other, in seconds from the election on."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import machine
from benchmarks.arena import Arena
from benchmarks.contenders import Contender
from benchmarks.verification import UNCHANGED, Delivery, Verifier, Versions
from benchmarks.zookeeper import Election

_BEFORE_ELECTION_NS = 100_000_000  # logs are not more precise than that

STARTED = "process start"
RESUMED = "new session"
ELECTED = "re-elected"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One failover; times are seconds from the election on.

    Attributes:
        round: From 1 on; 0 warms up.
        kind: What led to the election: only `ELECTED` ones are compared.
        election_s: From the event that led to it until the election.
        window_s: From that event until all was quiet.
        cpu: Processor seconds by process in that time; "others" have nothing to do with it.
        peak_memory_mb: Of the controller's process, since it was started.
        steps: What the controller's log says.
    """

    side: str
    round: int
    kind: str
    election_s: float
    first_request_s: float
    first_partitions_s: float
    leader_and_isr_s: float
    complete_s: float
    request_mb: float
    window_s: float
    cpu: dict[str, float]
    peak_memory_mb: float
    steps: dict[str, float]


class Failovers:
    """Has contenders elected in an arena, and measures what follows.

    Args:
        versions: Of the partitions' states, where they have changed before.
    """

    def __init__(self, arena: Arena, versions: Callable[[], Versions] = lambda: UNCHANGED) -> None:
        self._arena = arena
        self._versions = versions
        self._verifier = Verifier(arena.cluster, arena.broker_epochs)

    def turn(self, contender: Contender, number: int, samples: int) -> list[Measurement]:
        """Wake a contender up, have it elected again and again, and freeze it."""
        kind = STARTED if number == 0 else RESUMED
        measurements = [self._measure(contender, number, kind)]
        measurements += [self._measure(contender, number, ELECTED) for _ in range(samples)]
        self._arena.rest(contender)
        return measurements

    def _measure(self, contender: Contender, number: int, kind: str) -> Measurement:
        """One failover."""
        arena = self._arena
        arena.await_idle_machine()
        arena.stubs.forget()
        before = arena.usage(contender)
        with arena.blaming(contender):
            election = arena.elect(contender)
            arena.await_failover(contender)
        after = arena.usage(contender)
        delivery = self._verifier.verify(election, arena.stubs.take(), self._versions())
        return _measurement(
            contender,
            number,
            kind,
            election,
            delivery,
            after.since(before),
            window_s=(after.at - election.triggered_at) / 1e9,
        )


def _measurement(
    contender: Contender,
    number: int,
    kind: str,
    election: Election,
    delivery: Delivery,
    cpu: dict[str, float],
    *,
    window_s: float,
) -> Measurement:
    def since_election(at: int) -> float:
        return (at - election.elected_at) / 1e9

    return Measurement(
        side=contender.name,
        round=number,
        kind=kind,
        election_s=(election.elected_at - election.triggered_at) / 1e9,
        first_request_s=since_election(delivery.first_request_at),
        first_partitions_s=since_election(delivery.first_partitions_at),
        leader_and_isr_s=since_election(delivery.leader_and_isr_at),
        complete_s=since_election(delivery.complete_at),
        request_mb=delivery.request_bytes / 1e6,
        window_s=window_s,
        cpu=cpu,
        peak_memory_mb=machine.peak_memory_mb(contender.process.pid),
        steps=_steps(contender, election),
    )


def _steps(contender: Contender, election: Election) -> dict[str, float]:
    """When the log of this election passes the milestones, in seconds from the election on."""
    elected_at = election.elected_at + election.clock_offset
    steps: dict[str, float] = {}
    for line in contender.log():
        if line.at < elected_at - _BEFORE_ELECTION_NS:
            continue
        for expression, step in contender.milestones.items():
            if step not in steps and re.search(expression, line.message):
                steps[step] = (line.at - elected_at) / 1e9
    return steps
