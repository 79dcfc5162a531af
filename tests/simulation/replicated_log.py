"""A simple model of a partition's data: records, replicas, and which records are committed."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from regent.model.partition import LeaderAndIsr, TopicPartition
from tests.simulation.trace import InvariantViolatedError

if TYPE_CHECKING:
    from tests.simulation.isr_change_requests import PendingChange


class Record(NamedTuple):
    """A record: the leader epoch under which it was appended, and a number that no other has."""

    leader_epoch: int
    number: int


@dataclass(slots=True)
class Log:
    """What a broker has of a partition on disk. Survives a crash."""

    topic_id: uuid.UUID | None
    records: list[Record] = field(default_factory=list)
    high_watermark: int = 0


@dataclass(slots=True)
class Replica:
    """What a broker knows of a partition that it hosts. Lost in a crash.

    Attributes:
        state: Leadership as the last accepted LeaderAndIsr, or an own ISR change, has it.
        ends: On the leader: log end of each follower as of its last fetch.
        missed_since_ms: On the leader: when it began to miss an in-sync follower.
        epochs: On the leader: broker epoch of each follower as of its last fetch (KIP-903).
        pending: On the leader: the ISR that it has asked the controller for, and may have got.
    """

    log: Log
    state: LeaderAndIsr
    replicas: tuple[int, ...]
    is_leader: bool = False
    is_fetching: bool = False
    ends: dict[int, int] = field(default_factory=dict)
    missed_since_ms: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    pending: PendingChange | None = None
    may_ask_at_ms: int = 0

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Everybody who is in the ISR, or may be, if the controller has made the pending change."""
        wanted = () if self.pending is None else self.pending.isr
        return tuple(dict.fromkeys((*self.state.isr, *wanted)))

    def advance_high_watermark(self, broker_id: int) -> bool:
        """On the leader: what all in-sync replicas have is committed, those of the maximal ISR
        included. Whether that is more now."""
        ends = [
            len(self.log.records) if member == broker_id else self.ends.get(member, 0)
            for member in self.maximal_isr
        ]
        high_watermark = min(ends, default=0)
        if high_watermark <= self.log.high_watermark:
            return False
        self.log.high_watermark = high_watermark
        return True


def common_prefix(one: list[Record], other: list[Record]) -> int:
    """Number of leading records that two logs share."""
    shorter = min(len(one), len(other))
    for offset in range(shorter):
        if one[offset] != other[offset]:
            return offset
    return shorter


class Ledger:
    """Every record that a leader has called committed: it must never be lost. And which records are
    of a topic that is deleted: they must never be found in a topic of that name again.

    A partition that was led by a broker from outside the ISR is struck off for good.
    """

    def __init__(self) -> None:
        self.last_number = 0
        self._last_before_creation: dict[str, int] = {}
        self._committed: dict[TopicPartition, list[Record]] = {}
        self._unclean: dict[TopicPartition, None] = {}
        self._being_deleted: dict[str, None] = {}

    def next_number(self) -> int:
        """A number for a new record."""
        self.last_number += 1
        return self.last_number

    def topic_created(self, topic: str) -> None:
        """From now on the name is that of another topic."""
        self._last_before_creation[topic] = self.last_number

    def of_former_topic(self, tp: TopicPartition, records: list[Record]) -> list[Record]:
        """Those of the records that were produced before the partition's topic was created."""
        last = self._last_before_creation.get(tp.topic, 0)
        return [record for record in records if record.number <= last]

    def commit(self, tp: TopicPartition, records: list[Record]) -> None:
        """A leader's log up to its high watermark."""
        former = self.of_former_topic(tp, records)
        if former:
            raise InvariantViolatedError(f"{tp}: deleted records are committed again: {former}")
        if tp in self._unclean or tp.topic in self._being_deleted:
            return
        known = self._committed.setdefault(tp, [])
        if common_prefix(known, records) < min(len(known), len(records)):
            raise InvariantViolatedError(f"{tp}: committed {known}, now a leader has {records}")
        known.extend(records[len(known) :])

    def committed(self, tp: TopicPartition) -> list[Record]:
        """What leaders have called committed."""
        return list(self._committed.get(tp, ()))

    def committed_before(self, tp: TopicPartition, records: list[Record]) -> None:
        """A partition has come into being whose replicas have those of the former one."""
        self._committed[tp] = list(records)

    def strike_off(self, tp: TopicPartition) -> None:
        """An unclean election was allowed."""
        self._unclean[tp] = None
        self._committed.pop(tp, None)

    def strike_off_topic(self, topic: str) -> None:
        """The topic is to be deleted, replica by replica."""
        self._being_deleted[topic] = None
        self._forget_partitions(topic)

    def forget_topic(self, topic: str) -> None:
        """The topic is deleted, or recreated."""
        self._being_deleted.pop(topic, None)
        self._forget_partitions(topic)

    def _forget_partitions(self, topic: str) -> None:
        for tp in [tp for tp in self._committed if tp.topic == topic]:
            del self._committed[tp]
        for tp in [tp for tp in self._unclean if tp.topic == topic]:
            del self._unclean[tp]

    def missing(self, tp: TopicPartition, log: Log | None) -> list[Record]:
        """Committed records that a log does not have."""
        known = self._committed.get(tp, [])
        return known[common_prefix(known, [] if log is None else log.records) :]
