"""The cluster as ZooKeeper has it: brokers, topics, assignments, leadership.

Nothing in here depends on a controller.

Insertion order is the only order anything iterates in, so that a simulation replays exactly.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import Self

from regent.model.cluster import Broker
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.model.topic import metric_name

_NOTHING: Mapping[TopicPartition, ReplicaAssignment] = MappingProxyType({})
NO_TOPICS_UNREADABLE: Mapping[str, str] = MappingProxyType({})
_topic_of = itemgetter(0)


class ClusterFacts:
    """Brokers, topics, assignments and leadership, with the indexes that they need.

    Attributes:
        cluster_id: Id of the Kafka cluster; None as long as it has none.
        unreadable_topics: Why the nodes of topics cannot be decoded or read, or some partitions of
            them, by topic: what else is known of these is not all that there is. A change replaces
            the mapping.
    """

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.unreadable_topics: Mapping[str, str] = NO_TOPICS_UNREADABLE
        self._brokers: dict[int, Broker] = {}
        self._topic_ids: dict[str, uuid.UUID] = {}
        self._topics_by_id: dict[uuid.UUID, str] = {}
        self._topic_czxids: dict[str, int] = {}
        self._assignments: dict[str, dict[TopicPartition, ReplicaAssignment]] = {}
        # Topics whose partitions another state has, too: copied before they change.
        self._shared_topics: set[str] = set()
        self._partition_count = 0
        self._reassigning: dict[TopicPartition, None] = {}
        self._leadership: dict[TopicPartition, LeaderAndIsr] = {}
        self._topics_by_metric_name: dict[str, tuple[str, ...]] = {}
        self._changed_topics: dict[str, None] = {}

    # Brokers

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """Registered brokers, also those that are shutting down, by id and in order of their ids.

        A change replaces the mapping, so what was returned stays as it is.
        """
        return self._brokers

    def add_brokers(self, brokers: Iterable[Broker]) -> None:
        """Add brokers or replace their registrations."""
        merged = self._brokers | {b.broker_id: b for b in brokers}
        self._brokers = dict(sorted(merged.items()))

    def remove_brokers(self, broker_ids: Collection[int]) -> None:
        gone = frozenset(broker_ids)
        self._brokers = {i: b for i, b in self._brokers.items() if i not in gone}

    # Topics

    @property
    def topics(self) -> KeysView[str]:
        return self._assignments.keys()

    @property
    def topic_ids(self) -> Mapping[str, uuid.UUID]:
        return self._topic_ids

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """Name of the topic with an id, None if there is none."""
        return self._topics_by_id.get(topic_id)

    @property
    def shares_topic_ids(self) -> bool:
        """Whether several topics have the same id, or had."""
        return len(self._topic_ids) != len(self._topics_by_id)

    def has_topic(self, topic: str) -> bool:
        return topic in self._assignments

    @property
    def topic_czxids(self) -> Mapping[str, int]:
        """Transaction that created the node of each topic."""
        return self._topic_czxids

    def add_topic(self, topic: str, topic_id: uuid.UUID | None, czxid: int = 0) -> None:
        """Add a topic, or learn the id of one.

        Args:
            czxid: Transaction that created its node; 0: as is known.
        """
        self._add_name(topic)
        if topic_id is not None:
            self._forget_topic_id(topic)
            self._topic_ids[topic] = topic_id
            self._topics_by_id[topic_id] = topic
        if czxid:
            self._topic_czxids[topic] = czxid

    def _add_name(self, topic: str) -> None:
        self._changed_topics[topic] = None
        if topic not in self._assignments:
            self._assignments[topic] = {}
            name = metric_name(topic)
            self._topics_by_metric_name[name] = (*self.topics_with_metric_name(name), topic)

    def _partitions_to_change(self, topic: str) -> dict[TopicPartition, ReplicaAssignment]:
        """Assignments of a topic that is known, which no other state has."""
        partitions = self._assignments[topic]
        if topic in self._shared_topics:
            self._shared_topics.remove(topic)
            partitions = self._assignments[topic] = dict(partitions)
        return partitions

    def note_unreadable(self, problems: Mapping[str, str | None]) -> None:
        """Learn why the nodes of topics cannot be read, wholly or in part; None: they can."""
        known = self.unreadable_topics
        changed = [name for name, why in problems.items() if why != known.get(name)]
        if not changed:
            return
        self._changed_topics.update(dict.fromkeys(changed))
        merged = dict(known) | {name: problems[name] for name in changed}
        self.unreadable_topics = MappingProxyType(
            {name: why for name, why in merged.items() if why is not None}
        )

    def without_existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that do not exist. Partitions of unreadable topics may exist."""
        return [
            tp
            for tp in partitions
            if self.assignment(tp) is None and tp.topic not in self.unreadable_topics
        ]

    def remove_topic(self, topic: str) -> Mapping[TopicPartition, ReplicaAssignment]:
        """Forget a topic, its partitions and their leadership. Returns what it had."""
        self._changed_topics[topic] = None
        self.note_unreadable({topic: None})
        partitions = self._assignments.pop(topic, {})
        self._partition_count -= len(partitions)
        self._note_reassigned(topic)
        self._note_partitions(partitions)
        for tp in partitions:
            self._leadership.pop(tp, None)
            self._reassigning.pop(tp, None)
        self._shared_topics.discard(topic)
        self._forget_metric_name(topic)
        self._forget_topic_id(topic)
        self._topic_czxids.pop(topic, None)
        return partitions

    def _forget_topic_id(self, topic: str) -> None:
        topic_id = self._topic_ids.pop(topic, None)
        if topic_id is not None and self._topics_by_id.get(topic_id) == topic:
            del self._topics_by_id[topic_id]

    def topics_with_metric_name(self, name: str) -> Collection[str]:
        """Topics that metrics do not distinguish: see :func:`regent.model.topic.metric_name`."""
        return self._topics_by_metric_name.get(name, ())

    def _forget_metric_name(self, topic: str) -> None:
        name = metric_name(topic)
        twins = tuple(twin for twin in self.topics_with_metric_name(name) if twin != topic)
        if twins:
            self._topics_by_metric_name[name] = twins
        else:
            self._topics_by_metric_name.pop(name, None)

    def note_change(self, topic: str) -> None:
        """Something about a topic has changed that is not kept in here."""
        self._changed_topics[topic] = None

    def has_topic_changed(self, topic: str) -> bool:
        """Whether :meth:`take_changed_topics` would name it."""
        return topic in self._changed_topics

    def take_changed_topics(self) -> Collection[str]:
        """Topics that have been added, changed or removed since this was last called."""
        changed, self._changed_topics = self._changed_topics, {}
        return changed.keys()

    # Hooks

    def _note_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions are added, get another assignment or leadership, or are removed."""

    def _note_reassigned(self, topic: str) -> None:
        """Some partitions of a topic are added, get another assignment, or are removed."""

    # Copies

    def copy_topics(self) -> Self:
        """Topics, assignments and leadership as they are now, whatever becomes of either state.

        Takes a step for each topic, and none for a partition: both states have the partitions of a
        topic until one of them changes them. Leadership is copied, but not walked over. Topics
        are in the order of their names, as where they are read.
        """
        copy = type(self)()
        copy._topic_ids = dict(self._topic_ids)
        copy._topics_by_id = dict(self._topics_by_id)
        copy._topic_czxids = dict(self._topic_czxids)
        copy._assignments = {topic: self._assignments[topic] for topic in sorted(self._assignments)}
        self._shared_topics = set(self._assignments)
        copy._shared_topics = set(self._assignments)
        copy._partition_count = self._partition_count
        copy._reassigning = dict(self._reassigning)
        # copy() clones the table, which dict() does not where something was removed.
        copy._leadership = self._leadership.copy()
        copy._topics_by_metric_name = dict(self._topics_by_metric_name)
        copy.unreadable_topics = self.unreadable_topics
        return copy

    def take_topics(self, source: Self) -> None:
        """Have the topics, assignments and leadership of another state, which nobody uses
        afterwards. This state has no topics before; the topics count as changed."""
        self._topic_ids = source._topic_ids
        self._topics_by_id = source._topics_by_id
        self._topic_czxids = source._topic_czxids
        self._assignments = source._assignments
        self._shared_topics = source._shared_topics
        self._partition_count = source._partition_count
        self._reassigning = source._reassigning
        self._leadership = source._leadership
        self._topics_by_metric_name = source._topics_by_metric_name
        self.unreadable_topics = source.unreadable_topics
        self._changed_topics = dict.fromkeys((*source._assignments, *source.unreadable_topics))

    # Assignments

    def partitions_of(self, topic: str) -> Mapping[TopicPartition, ReplicaAssignment]:
        return self._assignments.get(topic, _NOTHING)

    def all_partitions(self) -> Iterator[TopicPartition]:
        return chain.from_iterable(self._assignments.values())

    @property
    def partition_count(self) -> int:
        return self._partition_count

    def assignment(self, tp: TopicPartition) -> ReplicaAssignment | None:
        partitions = self._assignments.get(tp.topic)
        return None if partitions is None else partitions.get(tp)

    def replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        """Replica list of a partition, empty if it is unknown."""
        assignment = self.assignment(tp)
        return () if assignment is None else assignment.replicas

    def assignments_of_each(
        self, partitions: Iterable[TopicPartition]
    ) -> list[ReplicaAssignment | None]:
        """:meth:`assignment` of many."""
        of_topic = self._assignments.get
        return [of_topic(tp[0], _NOTHING).get(tp) for tp in partitions]

    def set_assignments(
        self, topic: str, assignments: Mapping[TopicPartition, ReplicaAssignment]
    ) -> None:
        """Set the assignments of many partitions of one topic."""
        self._add_name(topic)
        if not assignments:
            return
        partitions = self._partitions_to_change(topic)
        self._partition_count -= len(partitions)
        partitions.update(assignments)
        self._partition_count += len(partitions)
        self._note_reassigned(topic)
        self._note_partitions(assignments)
        for tp, assignment in assignments.items():
            if assignment.adding_replicas or assignment.removing_replicas:
                self._reassigning[tp] = None
            elif self._reassigning:
                self._reassigning.pop(tp, None)

    @property
    def partitions_being_reassigned(self) -> Collection[TopicPartition]:
        return self._reassigning.keys()

    def is_topic_being_reassigned(self, topic: str) -> bool:
        return bool(self._reassigning) and any(
            tp in self._reassigning for tp in self.partitions_of(topic)
        )

    # Leadership

    @property
    def leadership(self) -> Mapping[TopicPartition, LeaderAndIsr]:
        return self._leadership

    def load_leadership(self, changes: Mapping[TopicPartition, LeaderAndIsr]) -> None:
        """Leadership is what was read."""
        self._leadership.update(changes)
        self._note_partitions(changes)
        self._changed_topics.update(dict.fromkeys(map(_topic_of, changes)))

    def forget_leadership(self, tp: TopicPartition) -> None:
        """The state of a partition is no longer readable."""
        self._changed_topics[tp.topic] = None
        self._note_partitions((tp,))
        self._leadership.pop(tp, None)
