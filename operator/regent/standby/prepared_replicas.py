"""The replicas of each broker, collected before a take-over needs them.

A new controller sends each broker all of its replicas, and has to go through all assignments to
know them. These change seldom, so a standby has them collected; a take-over collects only those of
topics that have just changed.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.hosted_replicas import Hosted, HostedReplicas
from regent.model.partition import TopicPartition

MISSING_AT_MOST: Final = 100
"""Topics that a take-over collects in one step. If more are missing, it does so in parts."""


class PreparedReplicas:
    """Collects the replicas of a cluster, those of some topics at a time.

    A cluster says which topics have other assignments than before. It has nobody else who asks for
    that.
    """

    def __init__(self) -> None:
        self._start_anew()

    def _start_anew(self) -> None:
        self._hosted = HostedReplicas()
        self._partitions: dict[str, tuple[TopicPartition, ...]] = {}
        self._topics: deque[str] = deque()

    def prepare(self, cluster: ClusterState, *, most: int) -> bool:
        """Collect what is missing; whether there may be more.

        Args:
            most: How many partitions are looked at, or those of one topic.
        """
        self._note_changes(cluster)
        looked_at = 0
        while self._topics and looked_at < most:
            looked_at += self._place(cluster, self._topics.popleft())
        return bool(self._topics)

    def is_complete(self, cluster: ClusterState) -> bool:
        """Whether a take-over would find everything collected."""
        return not (self._topics or cluster.has_reassigned_topics)

    def hand_over(self, cluster: ClusterState) -> Hosted | None:
        """Give away what was collected, complete; None if much of it is missing. From the next time
        on everything is collected again."""
        self._note_changes(cluster)
        given: Hosted | None = None
        if len(self._topics) <= MISSING_AT_MOST:
            while self._topics:
                self._place(cluster, self._topics.popleft())
            given = {
                b: partitions for b, partitions in self._hosted.by_broker.items() if partitions
            }
        cluster.expect_all_topics_reassigned()
        self._start_anew()
        return given

    def _note_changes(self, cluster: ClusterState) -> None:
        changed = cluster.take_reassigned_topics()
        if changed is None:
            self._start_anew()
            self._topics.extend(cluster.topics)
        else:
            self._topics.extend(changed)

    def _place(self, cluster: ClusterState, topic: str) -> int:
        """Collect the replicas of a topic anew, and return how many partitions that were."""
        before = self._partitions.pop(topic, ())
        self._hosted.remove(before)
        partitions = cluster.partitions_of(topic)
        self._hosted.add(partitions)
        if partitions:
            self._partitions[topic] = tuple(partitions)
        return len(before) + len(partitions)
