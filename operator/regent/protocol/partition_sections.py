"""Bytes of partitions, encoded once per batch and shared by the requests that name them.

LeaderAndIsr and UpdateMetadata describe a partition with the same leading fields, so these are the
same bytes for every broker and for both requests; what follows them differs from partition to
partition only in rare cases (a reassignment, an offline replica).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from regent.model.partition import TopicPartition
from regent.protocol.control_requests import PartitionState
from regent.protocol.primitives import Encoding, Int32Arrays, pack_int32

_pack_head: Final = struct.Struct(">iiii").pack
_topic_of: Final = itemgetter(0)


class PartitionPrefixes(dict[TopicPartition, bytes]):
    """Partition index, controller epoch, leader, leader epoch, ISR, partition epoch and replicas.

    Attributes:
        unusual: Partitions that are being reassigned or whose leader is recovering: what follows
            the prefix in LeaderAndIsr is the same for all others.
    """

    def __init__(
        self, partitions: Mapping[TopicPartition, PartitionState], *, encoding: Encoding
    ) -> None:
        super().__init__()
        self.encoding = encoding
        self.arrays = arrays = Int32Arrays(flexible=encoding.flexible)
        self.unusual: list[TopicPartition] = []
        for tp, (state, assignment) in partitions.items():
            self[tp] = (
                _pack_head(tp[1], state.controller_epoch, state.leader, state.leader_epoch)
                + arrays[state.isr]
                + pack_int32(state.partition_epoch)
                + arrays[assignment.replicas]
            )
            if (
                assignment.adding_replicas
                or assignment.removing_replicas
                or state.leader_recovery_state
            ):
                self.unusual.append(tp)


def by_topic(
    partitions: Iterable[TopicPartition], entry: Callable[[TopicPartition], bytes]
) -> dict[str, list[bytes]]:
    """Entries of partitions under their topics, in the order in which the topics first appear.

    Fast where the partitions of a topic are adjacent, correct anyway.
    """
    topics: dict[str, list[bytes]] = {}
    for topic, group in groupby(partitions, _topic_of):
        entries = list(map(entry, group))
        if topic in topics:
            topics[topic] += entries
        else:
            topics[topic] = entries
    return topics


def topics_section(
    topics: Mapping[str, list[bytes]],
    head: Callable[[str], bytes],
    *,
    encoding: Encoding,
) -> list[bytes]:
    """The array of topics, each with the array of its partitions, as parts to be joined.

    ``head`` gives the fields of a topic in front of its partitions.
    """
    parts = [encoding.array_length(len(topics))]
    array_length, tags = encoding.array_length, encoding.tags
    for topic, entries in topics.items():
        parts.append(head(topic) + array_length(len(entries)))
        parts += entries
        parts.append(tags)
    return parts


def ungrouped_section(topics: Mapping[str, list[bytes]], *, encoding: Encoding) -> list[bytes]:
    """The array of partitions of the oldest versions, where each repeats its topic's name."""
    parts = [encoding.array_length(sum(map(len, topics.values())))]
    for topic, entries in topics.items():
        name = encoding.string(topic)
        parts += [name + entry for entry in entries]
    return parts
