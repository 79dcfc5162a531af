"""Readings that a copy needs: from the path of an event to a node, and back to its path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from regent.model.partition import TopicPartition
from regent.zk_data import paths

K = TypeVar("K")

WATCHED: Final = (paths.BROKERS, paths.CLUSTER)
"""Paths of the recursive watches. These paths must not get one-shot watches, which would replace
the recursive watches in servers before 3.9."""

LISTED: Final = (paths.BROKER_IDS, paths.BROKER_TOPICS)
"""Nodes whose children make a :class:`Listing`."""


class Listing(NamedTuple):
    """Brokers and topics in ZooKeeper, by the children of :data:`LISTED`."""

    broker_ids: tuple[int, ...]
    topics: tuple[str, ...]

    @classmethod
    def of(cls, children: Sequence[Sequence[str] | None]) -> Listing:
        """From the children of :data:`LISTED`; None: there is no such node."""
        ids, topics = (names or () for names in children)
        numbers = (paths.broker_id_of(name) for name in ids)
        return cls(tuple(n for n in numbers if n is not None), tuple(topics))


class Reads(NamedTuple):
    """Nodes to be read together, topics before the states of their partitions."""

    cluster_id: bool
    broker_ids: tuple[int, ...]
    topics: tuple[str, ...]
    states: tuple[TopicPartition, ...]

    @property
    def paths(self) -> list[str]:
        """In the order in which :meth:`~regent.cluster.cache.ClusterCache.apply` takes nodes."""
        found = [paths.CLUSTER_ID] if self.cluster_id else []
        found += map(paths.broker_id, self.broker_ids)
        found += map(paths.topic, self.topics)
        found += map(paths.partition_state, self.states)
        return found

    def __len__(self) -> int:
        return self.cluster_id + len(self.broker_ids) + len(self.topics) + len(self.states)

    def __bool__(self) -> bool:
        return len(self) > 0


class DirtyNodes:
    """Nodes that may have changed since they were read, each once, in the order of their events."""

    def __init__(self) -> None:
        self.cluster_id = False
        self.broker_ids: dict[int, None] = {}
        self.topics: dict[str, None] = {}
        self.states: dict[TopicPartition, None] = {}

    def __len__(self) -> int:
        return self.cluster_id + len(self.broker_ids) + len(self.topics) + len(self.states)

    def add(self, touched: Iterable[str]) -> None:
        """Something has happened to the nodes at these paths. Those that no cache has are left
        out."""
        for path in touched:
            tp = paths.partition_of_state(path)
            if tp is not None:
                self.states[tp] = None
                continue
            topic = paths.topic_of(path)
            if topic is not None:
                if path == paths.topic(topic):
                    self.topics[topic] = None
                continue
            broker_id = paths.broker_of(path)
            if broker_id is not None:
                self.broker_ids[broker_id] = None
            elif path == paths.CLUSTER_ID:
                self.cluster_id = True

    def put_back(self, reads: Reads) -> None:
        """Keep nodes that were taken: their reading failed."""
        self.cluster_id |= reads.cluster_id
        self.broker_ids.update(dict.fromkeys(reads.broker_ids))
        self.topics.update(dict.fromkeys(reads.topics))
        self.states.update(dict.fromkeys(reads.states))

    def take(self, most: int) -> Reads:
        """The next nodes to be read: ``most`` or fewer, but all brokers. States come last: a topic
        may turn out to be deleted or replaced."""
        broker_ids, self.broker_ids = tuple(self.broker_ids), {}
        cluster_id, self.cluster_id = self.cluster_id, False
        topics = _take(self.topics, most)
        states = _take(self.states, most - len(topics))
        return Reads(cluster_id, broker_ids, topics, states)


def _take(dirty: dict[K, None], most: int) -> tuple[K, ...]:
    if most >= len(dirty):
        taken = tuple(dirty)
        dirty.clear()
        return taken
    taken = tuple(islice(dirty, max(most, 0)))
    for key in taken:
        del dirty[key]
    return taken
