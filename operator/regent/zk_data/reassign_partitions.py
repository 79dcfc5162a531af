"""``/admin/reassign_partitions``: partitions to be moved, as Kafka's tools ask for it.

Source: ``kafka.zk.ReassignPartitionsZNode``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.decoding import (
    DECODING_ERRORS,
    BrokerId,
    PartitionId,
    json_decoder,
    json_object,
    reason_of,
)


class ReassignPartitionsZNode(msgspec.Struct, frozen=True):
    """Content of the node.

    Attributes:
        targets: Replica list wanted for each partition; of two for one partition the last.
        problems: What is wrong with entries that are left out.
    """

    targets: dict[TopicPartition, tuple[int, ...]]
    problems: tuple[str, ...] = ()


class _Entry(msgspec.Struct):
    topic: str
    partition: PartitionId
    replicas: tuple[BrokerId, ...]


class _RawEntries(msgspec.Struct):
    """Every entry left undecoded, so that a bad one harms only itself."""

    partitions: list[msgspec.Raw]


_decode_raw = json_decoder(_RawEntries)
_decode_entry = msgspec.json.Decoder(_Entry).decode


def decode_reassign_partitions(data: bytes) -> ReassignPartitionsZNode:
    """What is asked for. A replica list may be one that cannot work.

    Raises:
        MalformedZNodeError: If the node as a whole does not decode.
    """
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    problems: list[str] = []
    for raw in _decode_raw(paths.REASSIGN_PARTITIONS, data).partitions:
        try:
            entry = _decode_entry(raw)
        except DECODING_ERRORS as error:
            problems.append(reason_of(error))
            continue
        targets[TopicPartition(entry.topic, entry.partition)] = entry.replicas
    return ReassignPartitionsZNode(targets, tuple(problems))


def encode_reassign_partitions(targets: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """Inverse of :func:`decode_reassign_partitions`, as Kafka's tools write it."""
    listed = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": replicas}
        for tp, replicas in targets.items()
    ]
    return json_object([("version", 1), ("partitions", listed)])
