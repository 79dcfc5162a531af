"""Which partitions are not led by their preferred replica, by the broker of that replica.

Leadership changes for 100,000 partitions at a time, and nobody looks at the balance meanwhile. So a
change only notes the partition; those noted are judged when somebody asks. That costs what has
changed, and what is imbalanced is found without a walk over the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

from regent.controller.state.cluster_state import ClusterState
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition

_NOTHING: Mapping[TopicPartition, None] = MappingProxyType({})


class LeaderBalance:
    """An index over the leadership of a cluster.

    Args:
        leaves_out: Whether the partitions of a topic do not count: it is being deleted. Who changes
            that says so by :meth:`note`.
    """

    def __init__(self, cluster: ClusterState, *, leaves_out: Callable[[str], bool]) -> None:
        self._cluster = cluster
        self._leaves_out = leaves_out
        self._noted: dict[TopicPartition, None] = {}
        self._preferred: dict[TopicPartition, int] = {}
        self._partition_counts: Counter[int] = Counter()
        self._led_by_others: dict[int, dict[TopicPartition, None]] = {}
        self._imbalanced: dict[TopicPartition, None] = {}

    def note(self, partitions: Iterable[TopicPartition]) -> None:
        """Something about partitions has changed that the cluster does not know of."""
        self._noted.update(dict.fromkeys(partitions))

    @property
    def imbalance_count(self) -> int:
        """``PreferredReplicaImbalanceCount``: partitions whose leader is not the preferred replica.

        While a reassignment adds the preferred replica, its partition counts from when that replica
        is in sync until the reassignment is completed, as in Kafka.
        """
        self._settle()
        return len(self._imbalanced)

    @property
    def imbalanced_brokers(self) -> Collection[int]:
        """Brokers that do not lead all partitions whose preferred replica they host."""
        self._settle()
        return self._led_by_others.keys()

    def led_by_others(self, broker_id: int) -> Collection[TopicPartition]:
        """Partitions that have, or had, a leader, but not their preferred replica, which is on this
        broker."""
        self._settle()
        return self._led_by_others.get(broker_id, _NOTHING).keys()

    def partition_count(self, broker_id: int) -> int:
        """Number of partitions whose preferred replica is on this broker."""
        self._settle()
        return self._partition_counts[broker_id]

    def _settle(self) -> None:
        changed = self._cluster.take_changed_partitions()
        if changed is None:
            self._settle_all()
            return
        noted, self._noted = self._noted, {}
        for tp in changed:
            self._settle_one(tp)
        for tp in noted:
            self._settle_one(tp)

    def _settle_all(self) -> None:
        """The same as noting every partition, for all at once."""
        self._noted = {}
        leadership = self._cluster.leadership
        for topic in self._cluster.topics:
            if self._leaves_out(topic):
                continue
            for tp, assignment in self._cluster.partitions_of(topic).items():
                if not assignment.replicas:
                    continue
                preferred = self._preferred[tp] = assignment.replicas[0]
                current = leadership.get(tp)
                if current is not None and (
                    current.leader != preferred or assignment.adding_replicas
                ):
                    self._judge(tp, assignment, current)
        self._partition_counts = Counter(self._preferred.values())

    def _settle_one(self, tp: TopicPartition) -> None:
        before = self._preferred.pop(tp, None)
        if before is not None:
            self._partition_counts[before] -= 1
            others = self._led_by_others.get(before)
            if others is not None:
                others.pop(tp, None)
                if not others:
                    del self._led_by_others[before]
            self._imbalanced.pop(tp, None)
        assignment = self._cluster.assignment(tp)
        if assignment is None or not assignment.replicas or self._leaves_out(tp.topic):
            return
        preferred = self._preferred[tp] = assignment.replicas[0]
        self._partition_counts[preferred] += 1
        current = self._cluster.leadership.get(tp)
        if current is not None:
            self._judge(tp, assignment, current)

    def _judge(
        self, tp: TopicPartition, assignment: ReplicaAssignment, current: LeaderAndIsr
    ) -> None:
        preferred = assignment.replicas[0]
        if current.leader != preferred:
            self._led_by_others.setdefault(preferred, {})[tp] = None
        if not has_preferred_leader(assignment, current):
            self._imbalanced[tp] = None


def has_preferred_leader(assignment: ReplicaAssignment, current: LeaderAndIsr) -> bool:
    """Whether a partition counts as balanced.

    Source: ``ControllerContext.hasPreferredLeader``.
    """
    preferred = assignment.replicas[0]
    if preferred in assignment.adding_replicas:
        return preferred not in current.isr
    return current.leader == preferred
