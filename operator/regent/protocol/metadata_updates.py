"""What UpdateMetadata says, as values that all receivers share: made once per batch or merge."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from regent.model.partition import TopicPartition
from regent.model.partition_columns import PartitionColumns
from regent.protocol.control_requests import BrokerList, ControlRequests, PartitionUpdates
from regent.protocol.partition_state import PartitionState

MAX_PARTITIONS: Final = 50_000
"""Partitions in one StopReplica, a later LeaderAndIsr, and an UpdateMetadata that removes some.

A broker works through a request in one piece. The slowest work is the deletion of replicas: at half
a millisecond for each, that many stay within request.timeout.ms (30 s).
"""

UPDATES_ARE_LARGER: Final = 5
"""So many times as many partitions go into one UpdateMetadata that removes none.

A broker that has started denies to its clients what the first one does not name. 250,000
partitions are more than ZooKeeper carries, and stay below socket.request.max.bytes (100 MiB) also
in the oldest versions, which repeat the topic's name for each.
"""

Updates = tuple[PartitionUpdates, ...]
"""Updates to be sent one after the other."""


class Metadata(NamedTuple):
    """What the UpdateMetadata of a batch says: the brokers, and partitions, perhaps none."""

    brokers: BrokerList
    updates: Updates


class SharedMetadata:
    """Makes the values of UpdateMetadata, each once for all channels. Not for concurrent use.

    Args:
        max_partitions: Partitions of one request; see :data:`MAX_PARTITIONS`.
    """

    def __init__(self, *, max_partitions: int = MAX_PARTITIONS) -> None:
        self.max_partitions = max_partitions
        self._brokers = BrokerList({})
        self._merged: weakref.WeakKeyDictionary[PartitionUpdates, list[_Merge]]
        self._merged = weakref.WeakKeyDictionary()

    def of(self, requests: ControlRequests) -> Metadata:
        """The values of a batch, whose list of brokers is that of the batch before if it is the
        same. To be asked once for each batch."""
        known = self._brokers
        if (known.brokers, known.announced) != (requests.brokers, requests.announced):
            self._brokers = BrokerList(requests.brokers, requests.announced)
        whole = PartitionUpdates(
            requests.partitions,
            deleted=requests.deleted_partitions,
            offline_replicas=requests.offline_replicas,
            topic_ids=requests.topic_ids,
        )
        return Metadata(self._brokers, _split(whole, self.max_partitions))

    def merge(self, updates: Iterable[PartitionUpdates]) -> Updates:
        """What is left to be said when several updates wait: the newest state of each partition.

        A partition that was deleted and is there again is deleted first: group coordinators drop
        the committed offsets of what is deleted. Channels that wait for the same updates get the
        same values, as long as one of them still has them.
        """
        sources = tuple(updates)
        known = self._merged.setdefault(sources[-1], [])
        for each in known:
            result = each.result()
            if result is not None and each.is_of(sources):
                return result
        merged = merge_updates(sources, max_partitions=self.max_partitions)
        known[:] = [each for each in known if each.result() is not None]
        known.append(_Merge(sources, merged))
        return merged


class _Merge:
    """Remembers a merge without keeping its values alive."""

    def __init__(self, sources: Updates, result: Updates) -> None:
        self._sources = tuple(map(weakref.ref, sources))
        self._result = tuple(map(weakref.ref, result))

    def is_of(self, sources: Updates) -> bool:
        return len(sources) == len(self._sources) and all(
            ref() is source for ref, source in zip(self._sources, sources, strict=True)
        )

    def result(self) -> Updates | None:
        found = [update for ref in self._result if (update := ref()) is not None]
        return tuple(found) if len(found) == len(self._result) else None


def merge_updates(updates: Sequence[PartitionUpdates], *, max_partitions: int) -> Updates:
    """See :meth:`SharedMetadata.merge`."""
    partitions: dict[TopicPartition, PartitionState] = {}
    deleted: dict[TopicPartition, None] = {}
    offline: dict[TopicPartition, tuple[int, ...]] = {}
    topic_ids: dict[str, uuid.UUID] = {}
    first: dict[TopicPartition, PartitionState] = {}
    first_ids: dict[str, uuid.UUID] = {}
    for update in updates:
        topics = dict.fromkeys(tp.topic for tp in update.partitions)
        if deleted:
            there = dict.fromkeys(tp.topic for tp in update.partitions if tp not in update.deleted)
            for tp in [tp for tp in deleted if tp.topic in there]:
                first[tp] = partitions.pop(tp)
                del deleted[tp]
                if tp.topic in topic_ids:
                    first_ids[tp.topic] = topic_ids[tp.topic]
        if offline:
            for tp in update.partitions:
                offline.pop(tp, None)
        if topic_ids:
            for topic in topics:
                topic_ids.pop(topic, None)
        partitions.update(update.partitions.items())
        if update.deleted:  # a set: its order is chance
            deleted |= ((tp, None) for tp in update.partitions if tp in update.deleted)
        offline |= (
            (tp, replicas)
            for tp, replicas in update.offline_replicas.items()
            if tp in update.partitions
        )
        topic_ids |= ((t, update.topic_ids[t]) for t in topics if t in update.topic_ids)
    return (
        *_split(PartitionUpdates(first, deleted=first, topic_ids=first_ids), max_partitions),
        *_split(
            PartitionUpdates(
                partitions, deleted=deleted, offline_replicas=offline, topic_ids=topic_ids
            ),
            max_partitions,
        ),
    )


def _split(updates: PartitionUpdates, size: int) -> Updates:
    """Updates of at most that many partitions each; none if there are no partitions.

    One that removes none may have more. What is removed comes last, where that makes a difference.
    """
    count = len(updates.partitions)
    limit = size if updates.deleted else size * UPDATES_ARE_LARGER
    if count <= limit:
        return (updates,) if count else ()
    if updates.deleted:
        removed = {tp: s for tp, s in updates.partitions.items() if tp in updates.deleted}
        if len(removed) < count:
            kept = {tp: s for tp, s in updates.partitions.items() if tp not in removed}
            return (
                *_split(_part_of(updates, kept, ()), size),
                *_split(_part_of(updates, removed, updates.deleted), size),
            )
    parts = PartitionColumns.of(updates.partitions).in_parts(limit)
    return tuple(_part_of(updates, part, updates.deleted) for part in parts)


def _part_of(
    whole: PartitionUpdates,
    partitions: Mapping[TopicPartition, PartitionState],
    deleted: Collection[TopicPartition],
) -> PartitionUpdates:
    return PartitionUpdates(
        partitions,
        deleted=deleted,
        offline_replicas=whole.offline_replicas,
        topic_ids=whole.topic_ids,
    )
