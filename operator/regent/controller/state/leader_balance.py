"""Which partitions are not led by their preferred replica, by the broker of that replica.

Leadership changes for 100,000 partitions at a time, and nobody looks at the balance meanwhile. So a
change only notes the partition; those noted are judged when somebody asks. That costs what has
changed, and what is imbalanced is found without a walk over the cluster.

The exception is a new term, in which all partitions are to be judged. Brokers wait for the
controller then, so that is done a little later and in parts: :meth:`LeaderBalance.count_some`. Who
needs the balance before has it made at once.
"""

from __future__ import annotations

from collections import Counter, deque
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
        self._uncounted: deque[str] = deque()  # topics, all of whose partitions are to be judged
        self._led_by_others: dict[int, dict[TopicPartition, None]] = {}
        self._lacks: dict[TopicPartition, int] = {}  # the same the other way round
        self._imbalanced: dict[TopicPartition, None] = {}
        # Who is preferred where is counted from the first question on: a failover has none.
        self._preferred: dict[TopicPartition, int] | None = None
        self._partition_counts: Counter[int] = Counter()

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
    def known_imbalance_count(self) -> int | None:
        """:attr:`imbalance_count`; None before :meth:`count_some` has gone through everything."""
        self._settle_changes()
        return None if self._uncounted else len(self._imbalanced)

    def count_some(self, most: int) -> bool:
        """Judge partitions that were not judged in this term; whether there are more.

        Args:
            most: How many partitions are looked at, or those of one topic.
        """
        self._settle_changes()
        looked_at = 0
        while self._uncounted and looked_at < most:
            looked_at += self._count(self._uncounted.popleft())
        return bool(self._uncounted)

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
        if self._preferred is None:
            self._preferred = {
                tp: assignment.replicas[0]
                for topic in self._cluster.topics
                if not self._leaves_out(topic)
                for tp, assignment in self._cluster.partitions_of(topic).items()
                if assignment.replicas
            }
            self._partition_counts = Counter(self._preferred.values())
        return self._partition_counts[broker_id]

    def _settle(self) -> None:
        self._settle_changes()
        while self._uncounted:
            self._count(self._uncounted.popleft())

    def _settle_changes(self) -> None:
        changed = self._cluster.take_changed_partitions()
        if changed is None:
            self._uncounted.extend(self._cluster.topics)
        else:
            self._settle_some(changed)
        if self._noted:
            noted, self._noted = self._noted, {}
            self._settle_some(noted)

    def _count(self, topic: str) -> int:
        """Judge the partitions of a topic, most of which are led as intended, and return how many
        they are. Whatever was judged of them before holds still: a change was settled."""
        partitions = {} if self._leaves_out(topic) else self._cluster.partitions_of(topic)
        leader_of = self._cluster.leadership.get
        for tp, assignment in partitions.items():
            current = leader_of(tp)
            if current is not None and (
                current.leader != assignment.replicas[0] or assignment.adding_replicas
            ):
                self._judge(tp, assignment, current)
        return len(partitions) or 1

    def _settle_some(self, partitions: Iterable[TopicPartition]) -> None:
        leadership = self._cluster.leadership
        topic: str | None = None
        assignments: Mapping[TopicPartition, ReplicaAssignment] = {}
        for tp in partitions:
            if tp.topic != topic:
                topic = tp.topic
                assignments = {} if self._leaves_out(topic) else self._cluster.partitions_of(topic)
            assignment = assignments.get(tp)
            if assignment is not None and not assignment.replicas:
                assignment = None  # all of them are deleted
            if self._preferred is not None:
                _recount(tp, assignment, self._preferred, self._partition_counts)
            self._imbalanced.pop(tp, None)
            if tp in self._lacks:
                self._forget(tp)
            current = leadership.get(tp)
            if assignment is not None and current is not None:
                self._judge(tp, assignment, current)

    def _forget(self, tp: TopicPartition) -> None:
        preferred = self._lacks.pop(tp)
        others = self._led_by_others[preferred]
        del others[tp]
        if not others:
            del self._led_by_others[preferred]

    def _judge(
        self, tp: TopicPartition, assignment: ReplicaAssignment, current: LeaderAndIsr
    ) -> None:
        preferred = assignment.replicas[0]
        if current.leader != preferred:
            self._lacks[tp] = preferred
            self._led_by_others.setdefault(preferred, {})[tp] = None
        if not has_preferred_leader(assignment, current):
            self._imbalanced[tp] = None


def _recount(
    tp: TopicPartition,
    assignment: ReplicaAssignment | None,
    preferred: dict[TopicPartition, int],
    counts: Counter[int],
) -> None:
    """Count a partition for the broker of its preferred replica, and no longer for another."""
    before = preferred.get(tp)
    now = None if assignment is None else assignment.replicas[0]
    if now == before:
        return
    if before is not None:
        counts[before] -= 1
        del preferred[tp]
    if now is not None:
        counts[now] += 1
        preferred[tp] = now


def has_preferred_leader(assignment: ReplicaAssignment, current: LeaderAndIsr) -> bool:
    """Whether a partition counts as balanced.

    Source: ``ControllerContext.hasPreferredLeader``.
    """
    preferred = assignment.replicas[0]
    if preferred in assignment.adding_replicas:
        return preferred not in current.isr
    return current.leader == preferred
