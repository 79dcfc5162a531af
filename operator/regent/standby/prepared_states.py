"""What brokers are sent of each partition, made before a take-over needs it.

A new controller sends every partition to every broker. The values that say so, and their bytes,
depend on leadership and assignment and on nothing else, so a standby can make them as soon as it
knows both. A take-over then makes only what is missing: nothing rests on their being there.

The bytes are collected for each broker, too
(:mod:`regent.controller.state.leadership_entries`), and kept up to date with the values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from regent.controller.state.announced_states import AnnouncedStates
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.leadership_entries import LeadershipEntries
from regent.model.partition import TopicPartition
from regent.protocol.leader_and_isr import usual_suffix
from regent.protocol.partition_state import PartitionState, prefixes_of

MISSING_AT_MOST: Final = 2_000
"""Values that a take-over makes, in some 10 ms, so that the entries are complete. Without them each
request costs a look at each of its partitions."""


class PreparedStates:
    """Makes the announced states of a cluster, some at a time.

    A cluster drops those that change, and says which. It has nobody else who asks for that.
    """

    def __init__(self) -> None:
        self._topics: deque[str] = deque()
        self._partitions: deque[TopicPartition] = deque()

    def prepare(self, cluster: ClusterState, *, most: int, collects: bool = True) -> bool:
        """Make values that are missing; whether there may be others.

        Args:
            most: How many partitions are looked at, or those of one topic.
            collects: Whether entries are collected, too, for the cluster's
                ``inter_broker_protocol``.
        """
        self._note_changes(cluster)
        while self._topics and len(self._partitions) < most:
            self._partitions.extend(cluster.partitions_of(self._topics.popleft()))
        some = min(len(self._partitions), most)
        entries = _entries_of(cluster)
        _make(cluster, entries, [self._partitions.popleft() for _ in range(some)])
        if self._partitions or self._topics:
            return True
        return collects and entries.collect(
            cluster.announced_states, cluster.partitions_of, most=most
        )

    def _note_changes(self, cluster: ClusterState) -> None:
        changed = cluster.take_changed_partitions()
        if changed is None:
            self._topics, self._partitions = deque(cluster.topics), deque()
        else:
            self._partitions.extend(changed)

    def is_complete(self, cluster: ClusterState) -> bool:
        """Whether a take-over would find everything made."""
        made = not (self._partitions or self._topics or cluster.has_changed_partitions)
        entries = cluster.announced_states.entries
        return made and (entries is None or (entries.is_complete and _fits(entries, cluster)))

    def hand_over(self, cluster: ClusterState) -> AnnouncedStates:
        """Give away what was made, and a little that is missing. From the next time on everything
        is made again."""
        self._note_changes(cluster)
        if not self._topics and len(self._partitions) <= MISSING_AT_MOST:
            self.prepare(cluster, most=MISSING_AT_MOST)
        given, cluster.announced_states = cluster.announced_states, AnnouncedStates()
        cluster.expect_all_partitions_changed()
        self._topics.clear()
        self._partitions.clear()
        return given


def _entries_of(cluster: ClusterState) -> LeadershipEntries:
    """Those of the protocol version that brokers have now."""
    entries = cluster.announced_states.entries
    if entries is None or not _fits(entries, cluster):
        is_first, suffix = entries is None, usual_suffix(cluster.inter_broker_protocol)
        entries = cluster.announced_states.entries = LeadershipEntries(suffix)
        if not is_first:
            entries.expect(cluster.topics)
    return entries


def _fits(entries: LeadershipEntries, cluster: ClusterState) -> bool:
    return entries.suffix == usual_suffix(cluster.inter_broker_protocol)


def _make(
    cluster: ClusterState, entries: LeadershipEntries, partitions: Iterable[TopicPartition]
) -> None:
    announced, leadership = cluster.announced_states, cluster.leadership
    made: dict[TopicPartition, PartitionState] = {}
    for tp in partitions:
        current, assignment = leadership.get(tp), cluster.assignment(tp)
        if assignment is None:
            entries.settle(tp)
        elif tp not in announced and current is not None:
            made[tp] = announced[tp] = PartitionState(tp.partition, current, assignment)
    # Brokers from 2.4 on take this encoding. Older ones are rare beside ZooKeeper 3.6, which a
    # standby needs; theirs is made when it is needed.
    prefixes_of(list(made.values()), flexible=True)
    for tp, state in made.items():
        entries.replace(tp, state)
