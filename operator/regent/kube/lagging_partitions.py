"""Which partitions lack replicas in sync, apart from those that move, kept up to date by the topics
that change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from regent.controller.view import ClusterView, PartitionView
from regent.model.partition import TopicPartition


class Lagging(NamedTuple):
    """Partitions that lack replicas in sync.

    Attributes:
        total: How many.
        example: One of them; None: there are none.
    """

    total: int = 0
    example: TopicPartition | None = None


class LaggingPartitions:
    """Partitions that do not move, have a leader, and have replicas out of sync.

    A replica counts if its broker is alive and does not shut down: with others, less copying would
    bring nothing back.

    Attributes:
        shrinks: How often such a replica has left an ISR.
    """

    def __init__(self) -> None:
        self._missing: dict[str, dict[int, frozenset[int]]] = {}
        self.shrinks = 0

    def look(self, view: ClusterView) -> Lagging:
        """The partitions that lack replicas now."""
        available, total, example = view.available_brokers, 0, None
        for topic, partitions in self._missing.items():
            for partition, missing in partitions.items():
                if not missing.isdisjoint(available):
                    total += 1
                    example = example or TopicPartition(topic, partition)
        return Lagging(total, example)

    def see_topics(self, view: ClusterView, topics: Iterable[str]) -> None:
        """Take in topics that have changed."""
        available = view.available_brokers
        for name in topics:
            before = self._missing.get(name, {})
            missing = _missing_of(view, name)
            for partition, brokers in missing.items():
                new = brokers - before.get(partition, frozenset())
                self.shrinks += not new.isdisjoint(available)
            if missing:
                self._missing[name] = missing
            else:
                self._missing.pop(name, None)

    def see_all(self, view: ClusterView) -> None:
        """Everything may have changed. What is missing then has not just left."""
        self._missing = {
            name: missing for name in view.topics if (missing := _missing_of(view, name))
        }


def _missing_of(view: ClusterView, name: str) -> dict[int, frozenset[int]]:
    topic = view.topics.get(name)
    if topic is None or topic.is_being_deleted:
        return {}
    return {each.partition: frozenset(m) for each in topic.partitions if (m := _missing(each))}


def _missing(partition: PartitionView) -> tuple[int, ...]:
    if len(partition.isr) == len(partition.replicas):  # first, since it is so for nearly all
        return ()
    if partition.is_being_reassigned or not partition.has_leader:
        return ()
    return tuple(broker for broker in partition.replicas if broker not in partition.isr)
