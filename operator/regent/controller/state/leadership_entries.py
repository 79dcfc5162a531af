"""What the LeaderAndIsr requests of a take-over consist of, collected by broker and topic.

A new controller sends each broker all of its replicas. Most of that request are the encoded
leading bytes of partitions (:mod:`regent.protocol.partition_state`), topic by topic. A standby
collects them before they are needed: a request is then joined from them, without a look at any
partition.

Who changes leadership or assignments says so (:meth:`LeadershipEntries.drop`,
:meth:`LeadershipEntries.forget`), so what is out of date is never sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import TypeGuard

from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.protocol.partition_state import PartitionState

Entries = Mapping[int, Mapping[str, list[bytes]]]
"""By broker and topic the leading bytes of each partition that the broker hosts, in the flexible
encoding. The topics of a broker need not be all that it hosts."""


class LeadershipEntries:
    """Collects the entries of topics none of whose partitions is being reassigned or has a leader
    that recovers: what follows the leading bytes is the same for all of them."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._by_broker: dict[int, dict[str, list[bytes]]] = {}
        self._partitions: dict[str, dict[int, list[int]]] = {}  # where a partition is in a list
        self._outdated: dict[str, dict[TopicPartition, None]] = {}
        self._waiting: dict[str, None] = {}

    @property
    def is_complete(self) -> bool:
        """Whether nothing waits for :meth:`collect`."""
        return not self._waiting

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """The values of partitions are about to change."""
        for tp in partitions:
            if tp.topic in self._partitions:
                self._outdated.setdefault(tp.topic, {})[tp] = None

    def forget(self, topic: str) -> None:
        """The assignments of a topic change, or it is removed."""
        for broker_id in self._partitions.pop(topic, ()):
            del self._by_broker[broker_id][topic]
        self._outdated.pop(topic, None)
        self._waiting[topic] = None

    def replace(self, tp: TopicPartition, state: PartitionState) -> None:
        """The value of a partition was made, and encoded."""
        topic = tp.topic
        placed = self._partitions.get(topic)
        if placed is None:
            self._waiting[topic] = None
        elif not _is_usual(state):
            self.forget(topic)
        else:
            for broker_id in state.assignment.replicas:
                at = bisect_left(placed[broker_id], tp.partition)
                self._by_broker[broker_id][topic][at] = _entry(state)
            outdated = self._outdated.get(topic, {})
            outdated.pop(tp, None)
            if not outdated:
                self._outdated.pop(topic, None)

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
        placed = self._partitions[topic] = {}
        entries: dict[int, list[bytes]] = {}
        for state in states:
            for broker_id in state.assignment.replicas:
                known = entries.get(broker_id)
                if known is None:
                    known = entries[broker_id] = []
                    placed[broker_id] = []
                known.append(_entry(state))
                placed[broker_id].append(state.partition)
        for broker_id, some in entries.items():
            self._by_broker.setdefault(broker_id, {})[topic] = some

    @property
    def up_to_date(self) -> Entries:
        """What was collected and holds."""
        outdated = self._outdated
        return {
            broker_id: {topic: some for topic, some in topics.items() if topic not in outdated}
            for broker_id, topics in self._by_broker.items()
        }

    def take(self) -> Entries:
        """What was collected and holds. Nothing is known any more."""
        taken = self.up_to_date
        self._clear()
        return taken


def _entry(state: PartitionState) -> bytes:
    assert state.flexible is not None, "the value was encoded"
    return state.flexible


def _is_usual(state: PartitionState | None) -> TypeGuard[PartitionState]:
    """Whether there is an encoded value, of the kind that most are."""
    return state is not None and state.flexible is not None and not state.is_unusual
