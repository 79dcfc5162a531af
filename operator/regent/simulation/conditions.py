"""What a flight takes for granted: times, rates, and settings of topics."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from regent.model.errors import ConfigurationError
from regent.planning.snapshot import Snapshot, SnapshotPartition

ELECTIONS_PER_S: Final = 30_000
"""From the failure of a broker that led 5,000 partitions until all others knew the new leaders:
0.15 s, ``broker-crash`` in docs/benchmarks.md."""

_KAFKAS_MIN_ISR: Final = 1


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the model is given. Bytes and seconds.

    Attributes:
        session_timeout_s: ``zookeeper.session.timeout.ms`` of the brokers: so long nobody notices
            that one has died.
        elections_per_s: Leaders that are elected, and known to all brokers, in a second.
        restart_s: How long a broker that is restarted is down.
        written: Bytes a second that producers write to the cluster.
        throttle: Bytes a second that a broker copies while it catches up.
        min_isr: ``min.insync.replicas`` where neither a pattern nor the snapshot says it.
        min_isr_patterns: Topics, or patterns with ``*``, ``?`` or ``[``, and theirs; the last that
            fits counts.
        balances_leaders: ``auto.leader.rebalance.enable``.
    """

    session_timeout_s: float = 18.0
    elections_per_s: int = ELECTIONS_PER_S
    restart_s: float = 30.0
    written: int = 0
    throttle: int = 50_000_000
    min_isr: int = _KAFKAS_MIN_ISR
    min_isr_patterns: tuple[tuple[str, int], ...] = ()
    balances_leaders: bool = True


def min_isr_of(snapshot: Snapshot, conditions: Conditions) -> dict[str, int]:
    """``min.insync.replicas`` of each topic.

    Raises ConfigurationError for a pattern that fits no topic.
    """
    topics = dict.fromkeys(partition.topic for partition in snapshot.partitions)
    found = {
        topic: snapshot.topics[topic].min_isr if topic in snapshot.topics else conditions.min_isr
        for topic in topics
    }
    for pattern, value in conditions.min_isr_patterns:
        fitting = fnmatch.filter(topics, pattern)
        if not fitting:
            raise ConfigurationError(
                f"min.insync.replicas: the snapshot has no topic like {pattern!r}"
            )
        found.update(dict.fromkeys(fitting, value))
    return found


class CatchUp:
    """How long brokers copy what they have missed.

    What producers write is spread over the partitions by their sizes; evenly, if no size is known.
    A broker gets all that is written to its partitions, and copies with what the throttle leaves.
    """

    def __init__(self, snapshot: Snapshot, conditions: Conditions) -> None:
        self._throttle = conditions.throttle
        self._written_to: dict[int, float] = {}
        if conditions.written:
            self._written_to = _written_to(snapshot.partitions, conditions.written)

    def seconds(self, broker: int, down_s: float) -> float:
        """Until a broker that was down for some time is in sync; infinite if it never is."""
        written = self._written_to.get(broker, 0.0)
        if not written:
            return 0.0
        spare = self._throttle - written
        return down_s * written / spare if spare > 0 else math.inf


def _written_to(partitions: Sequence[SnapshotPartition], written: int) -> dict[int, float]:
    sizes = [max(partition.sizes) for partition in partitions]
    weights: list[int] = [max(size, 0) for size in sizes]
    if not any(weights):
        weights = [1] * len(partitions)
    total = sum(weights)
    rates: dict[int, float] = {}
    for partition, weight in zip(partitions, weights, strict=True):
        for broker in partition.replicas:
            rates[broker] = rates.get(broker, 0.0) + written * weight / total
    return rates


def assumptions_of(
    snapshot: Snapshot, conditions: Conditions, min_isr: Mapping[str, int]
) -> tuple[str, ...]:
    """What the figures rest on, a sentence each."""
    return tuple(_assumptions(snapshot, conditions, min_isr))


def _assumptions(
    snapshot: Snapshot, conditions: Conditions, min_isr: Mapping[str, int]
) -> Iterator[str]:
    yield (
        f"a broker that dies is noticed after {conditions.session_timeout_s:g} s "
        "(zookeeper.session.timeout.ms)"
    )
    yield f"{conditions.elections_per_s:,} leaders a second are elected and known to all brokers"
    if conditions.written:
        yield (
            f"producers write {conditions.written:,} bytes a second; a broker that returns copies "
            f"{conditions.throttle:,} bytes a second"
        )
    else:
        yield "nothing is written meanwhile: a broker that returns is in sync at once"
    unknown = sum(partition.isr is None for partition in snapshot.partitions)
    if unknown:
        yield (
            f"the snapshot tells no ISR of {unknown:,} partitions: with a leader all living "
            "replicas are taken to be in sync, without one all dead replicas were"
        )
    dead = [broker.id for broker in snapshot.brokers if not broker.alive]
    if dead:
        yield (
            f"brokers {', '.join(map(str, dead))} were dead when the snapshot was taken: they "
            "count as down since the beginning, and their racks are not known unless it names them"
        )
    untold = sum(
        topic not in snapshot.topics
        and not any(fnmatch.fnmatch(topic, pattern) for pattern, _ in conditions.min_isr_patterns)
        for topic in min_isr
    )
    if untold:
        yield (
            f"min.insync.replicas is {conditions.min_isr} for {untold:,} topics of which the "
            "snapshot does not tell it"
        )
