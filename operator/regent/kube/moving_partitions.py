"""Which partitions of the cluster are being reassigned, by whomever, kept up to date by the topics
that change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regent.controller.view import ClusterView, PartitionView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.request import SentMove
from regent.reconcile.reassignments.stages import find_partition


class MovingPartitions:
    """What moves now, and what was sent and does not show in the view yet.

    What was sent for one resource counts for the others, too: together they keep the limits.
    """

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[TopicPartition, PartitionView]] = {}
        self._sent: dict[TopicPartition, SentMove] = {}

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionView]:
        """Partitions that the view shows as being reassigned."""
        return {tp: each for topic in self._by_topic.values() for tp, each in topic.items()}

    def sent(self, *, at: float) -> Mapping[TopicPartition, SentMove]:
        """What was sent, until it shows or should have shown at this time."""
        self._sent = {tp: each for tp, each in self._sent.items() if each.until > at}
        return self._sent

    def send(self, moves: Mapping[TopicPartition, SentMove]) -> None:
        """These are about to be sent."""
        self._sent.update(moves)

    def take_back(self, partitions: Iterable[TopicPartition]) -> None:
        """These were refused."""
        for tp in partitions:
            self._sent.pop(tp, None)

    def see_topics(self, view: ClusterView, topics: frozenset[str]) -> bool:
        """Take in topics that have changed; whether something moves now, or does not any more."""
        before = {tp for topic in topics for tp in self._by_topic.get(topic, ())}
        for topic in topics:
            moving = _moving_of(view, topic)
            if moving:
                self._by_topic[topic] = moving
            else:
                self._by_topic.pop(topic, None)
        after = {tp for topic in topics for tp in self._by_topic.get(topic, ())}
        shown = [
            tp for tp, each in self._sent.items() if tp.topic in topics and _shows(view, tp, each)
        ]
        self.take_back(shown)
        return bool(shown) or before != after

    def see_all(self, view: ClusterView) -> None:
        """Everything may have changed."""
        self._by_topic = {
            name: moving for name in view.topics if (moving := _moving_of(view, name))
        }


def _shows(view: ClusterView, tp: TopicPartition, sent: SentMove) -> bool:
    """Whether a partition is where it was sent, or on its way there."""
    topic = view.topics.get(tp.topic)
    partition = None if topic is None else find_partition(topic, tp.partition)
    if partition is None:
        return True  # there is nothing any more that could move
    return partition.target_replicas == sent.target


def _moving_of(view: ClusterView, name: str) -> dict[TopicPartition, PartitionView]:
    topic = view.topics.get(name)
    return {
        TopicPartition(name, each.partition): each
        for each in (() if topic is None else topic.partitions)
        if each.is_being_reassigned
    }
