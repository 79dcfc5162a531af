"""What brokers are sent of each partition, made before a take-over needs it.

A new controller sends every partition to every broker. The values that say so, and their bytes,
depend on leadership and assignment and on nothing else, so a standby can make them as soon as it
knows both. A take-over then makes only what is missing: nothing rests on their being there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from regent.controller.state.announced_states import AnnouncedStates
from regent.controller.state.cluster_state import ClusterState
from regent.model.partition import TopicPartition
from regent.protocol.partition_state import PartitionState, prefixes_of


class PreparedStates:
    """Makes the announced states of a cluster, some at a time.

    A cluster drops those that change, and says which. It has nobody else who asks for that.
    """

    def __init__(self) -> None:
        self._topics: deque[str] = deque()
        self._partitions: deque[TopicPartition] = deque()

    def prepare(self, cluster: ClusterState, *, most: int) -> bool:
        """Make values that are missing; whether there may be others.

        Args:
            most: How many partitions are looked at, or those of one topic.
        """
        changed = cluster.take_changed_partitions()
        if changed is None:
            self._topics, self._partitions = deque(cluster.topics), deque()
        else:
            self._partitions.extend(changed)
        while self._topics and len(self._partitions) < most:
            self._partitions.extend(cluster.partitions_of(self._topics.popleft()))
        some = min(len(self._partitions), most)
        _make(cluster, [self._partitions.popleft() for _ in range(some)])
        return bool(self._partitions or self._topics)

    def hand_over(self, cluster: ClusterState) -> AnnouncedStates:
        """Give away what was made. From the next time on everything is made again."""
        given, cluster.announced_states = cluster.announced_states, AnnouncedStates()
        cluster.expect_all_partitions_changed()
        self._topics.clear()
        self._partitions.clear()
        return given


def _make(cluster: ClusterState, partitions: Iterable[TopicPartition]) -> None:
    announced, leadership = cluster.announced_states, cluster.leadership
    made: list[PartitionState] = []
    for tp in partitions:
        current, assignment = leadership.get(tp), cluster.assignment(tp)
        if tp not in announced and current is not None and assignment is not None:
            state = announced[tp] = PartitionState(tp.partition, current, assignment)
            made.append(state)
    # Brokers from 2.4 on take this encoding. Older ones are rare beside ZooKeeper 3.6, which a
    # standby needs; theirs is made when it is needed.
    prefixes_of(made, flexible=True)
