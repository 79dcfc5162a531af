"""What the LeaderAndIsr requests of a take-over consist of, collected by broker and topic.

A new controller sends each broker all of its replicas. Most of that request are the entries of
partitions that nothing unusual happens to, topic by topic. A standby collects them, encoded, before
they are needed: a request is then joined from them, without a look at any partition.

Who changes leadership or assignments says so (:meth:`LeadershipEntries.drop`,
:meth:`LeadershipEntries.forget`), so what is out of date is never sent.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeGuard

from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.protocol.collected_entries import CollectedEntries, TopicEntries
from regent.protocol.partition_state import PartitionState

Entries = Mapping[int, CollectedEntries]
"""By broker."""

SECTION: Final = 256
"""Entries that are held in one piece: some 20 kB."""

_NO_NUMBERS: Final = array("i")


class LeadershipEntries:
    """Collects the entries of topics none of whose partitions is being reassigned or has a leader
    that recovers.

    Args:
        suffix: As in :class:`CollectedEntries`.
    """

    def __init__(self, suffix: bytes) -> None:
        self.suffix = suffix
        self._clear()

    def _clear(self) -> None:
        self._by_broker: dict[int, dict[str, _Entries | _Sections]] = {}
        self._hosts: dict[str, tuple[int, ...]] = {}
        self._outdated: dict[str, dict[TopicPartition, None]] = {}
        self._waiting: dict[str, None] = {}

    @property
    def is_complete(self) -> bool:
        """Whether nothing waits for :meth:`collect`."""
        return not self._waiting

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """The values of partitions are about to change."""
        for tp in partitions:
            if tp.topic in self._hosts:
                self._outdated.setdefault(tp.topic, {})[tp] = None

    def forget(self, topic: str) -> None:
        """The assignments of a topic change, or it is removed."""
        for broker_id in self._hosts.pop(topic, ()):
            del self._by_broker[broker_id][topic]
        self._outdated.pop(topic, None)
        self._waiting[topic] = None

    def expect(self, topics: Iterable[str]) -> None:
        """Topics are to be collected whose values were made already."""
        self._waiting.update(dict.fromkeys(topics))

    def replace(self, tp: TopicPartition, state: PartitionState) -> None:
        """The value of a partition was made, and encoded."""
        topic = tp.topic
        if topic not in self._hosts:
            self._waiting[topic] = None
        elif not _is_usual(state):
            self.forget(topic)
        else:
            entry = _prefix(state) + self.suffix
            for broker_id in state.assignment.replicas:
                self._by_broker[broker_id][topic].replace(tp.partition, entry)
            self.settle(tp)

    def settle(self, tp: TopicPartition) -> None:
        """Nothing about a partition is out of date any more; or there is no such partition."""
        outdated = self._outdated.get(tp.topic, {})
        outdated.pop(tp, None)
        if not outdated:
            self._outdated.pop(tp.topic, None)

    def collect(
        self,
        states: Mapping[TopicPartition, PartitionState],
        partitions_of: Callable[[str], Mapping[TopicPartition, ReplicaAssignment]],
        *,
        most: int,
    ) -> bool:
        """Collect the entries of topics that wait; whether there may be others.

        Args:
            states: The values of partitions, encoded. A topic that lacks some is left out until
                one of them is made.
            partitions_of: The assignments of a topic.
            most: How many partitions are looked at, or those of one topic.
        """
        looked_at = 0
        while self._waiting and looked_at < most:
            topic = next(iter(self._waiting))
            del self._waiting[topic]
            partitions = sorted(partitions_of(topic))
            looked_at += len(partitions) or 1
            found = [state for tp in partitions if _is_usual(state := states.get(tp))]
            if found and len(found) == len(partitions):
                self._place(topic, found)
        return bool(self._waiting)

    def _place(self, topic: str, states: Iterable[PartitionState]) -> None:
        """Collect the entries of a topic, whose partitions are in order."""
        hosted: dict[int, list[PartitionState]] = {}
        for state in states:
            for broker_id in state.assignment.replicas:
                hosted.setdefault(broker_id, []).append(state)
        self._hosts[topic] = tuple(hosted)
        for broker_id, some in hosted.items():
            partitions, prefixes = [state.partition for state in some], list(map(_prefix, some))
            entries: _Entries | _Sections
            if len(some) <= SECTION:
                entries = _Entries(partitions, prefixes, self.suffix)
            else:
                entries = _Sections(partitions, prefixes, self.suffix)
            self._by_broker.setdefault(broker_id, {})[topic] = entries

    @property
    def up_to_date(self) -> Entries:
        """What was collected and holds."""
        outdated = self._outdated
        return {
            broker_id: CollectedEntries(
                self.suffix,
                {topic: some for topic, some in topics.items() if topic not in outdated},
            )
            for broker_id, topics in self._by_broker.items()
        }

    def take(self) -> Entries:
        """What was collected and holds. Nothing is known any more."""
        taken = self.up_to_date
        self._clear()
        return taken


class _Entries(TopicEntries):
    """Entries that can be replaced. Their lengths differ with their ISRs: where one begins is the
    sum of those before it."""

    __slots__ = ("_lengths", "_partitions")

    def __init__(self, partitions: Iterable[int], prefixes: list[bytes], suffix: bytes) -> None:
        super().__init__(len(prefixes), bytearray(suffix.join([*prefixes, b""])))
        # A cluster of small topics has one of these for nearly each replica: a single entry needs
        # neither, and they would be a third of its memory.
        is_one = len(prefixes) == 1
        self._partitions = _NO_NUMBERS if is_one else array("i", partitions)
        self._lengths = (
            _NO_NUMBERS if is_one else array("i", [len(p) + len(suffix) for p in prefixes])
        )

    def replace(self, partition: int, entry: bytes) -> None:
        """Another entry for one of the partitions."""
        assert isinstance(self._encoded, bytearray)
        if self.count == 1:
            self._encoded[:] = entry
            return
        lengths, at = self._lengths, bisect_left(self._partitions, partition)
        start = sum(lengths[:at])
        self._encoded[start : start + lengths[at]] = entry
        lengths[at] = len(entry)


class _Sections(TopicEntries):
    """The same of a topic with more partitions on a broker: a replacement costs what its section
    has. When a broker dies thousands of entries change their lengths."""

    __slots__ = ("_firsts", "_sections")

    def __init__(self, partitions: Sequence[int], prefixes: list[bytes], suffix: bytes) -> None:
        super().__init__(len(prefixes), b"")
        starts = range(0, len(prefixes), SECTION)
        self._firsts = [partitions[start] for start in starts]
        self._sections = [
            _Entries(partitions[start : start + SECTION], prefixes[start : start + SECTION], suffix)
            for start in starts
        ]

    @property
    def encoded(self) -> bytes:
        return b"".join(section.encoded for section in self._sections)

    def replace(self, partition: int, entry: bytes) -> None:
        """Another entry for one of the partitions."""
        section = self._sections[bisect_right(self._firsts, partition) - 1]
        section.replace(partition, entry)


def _prefix(state: PartitionState) -> bytes:
    assert state.flexible is not None, "the value was encoded"
    return state.flexible


def _is_usual(state: PartitionState | None) -> TypeGuard[PartitionState]:
    """Whether there is an encoded value, of the kind that most are."""
    return state is not None and state.flexible is not None and not state.is_unusual
