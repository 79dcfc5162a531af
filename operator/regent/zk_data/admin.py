"""Requests to the controller: ``/admin/reassign_partitions`` and
``/admin/preferred_replica_election``.

A delete request (``/admin/delete_topics/<topic>``) has no content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.decoding import Int32, PartitionId, json_decoder, json_object


class _Reassignment(msgspec.Struct):
    topic: str
    partition: PartitionId
    replicas: tuple[Int32, ...]


class _ReassignPartitions(msgspec.Struct):
    partitions: list[_Reassignment]


class _Partition(msgspec.Struct):
    topic: str
    partition: PartitionId


class _Partitions(msgspec.Struct):
    partitions: list[_Partition]


_decode_reassignments = json_decoder(_ReassignPartitions)
_decode_partitions = json_decoder(_Partitions)


def decode_reassign_partitions(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Target replicas by partition, in the order of the request; of two for one partition the last
    counts. Whether the replicas make sense is the controller's to judge.

    Raises:
        MalformedZNodeError: If the request does not decode.
    """
    request = _decode_reassignments(paths.REASSIGN_PARTITIONS, data)
    return {TopicPartition(r.topic, r.partition): r.replicas for r in request.partitions}


def encode_reassign_partitions(reassignments: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """Inverse of :func:`decode_reassign_partitions`."""
    partitions = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": replicas}
        for tp, replicas in reassignments.items()
    ]
    return json_object([("version", 1), ("partitions", partitions)])


def decode_preferred_replica_election(data: bytes) -> tuple[TopicPartition, ...]:
    """Partitions to elect the preferred leader of, without repetitions, in the request's order.

    Raises:
        MalformedZNodeError: If the request does not decode.
    """
    return decode_partitions(paths.PREFERRED_REPLICA_ELECTION, data)


def encode_preferred_replica_election(partitions: Iterable[TopicPartition]) -> bytes:
    """Inverse of :func:`decode_preferred_replica_election`."""
    return encode_partitions(partitions)


def decode_partitions(path: str, data: bytes) -> tuple[TopicPartition, ...]:
    """A list of partitions, the content of several kinds of nodes, without repetitions.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    listed = _decode_partitions(path, data).partitions
    return tuple(dict.fromkeys(TopicPartition(p.topic, p.partition) for p in listed))


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Inverse of :func:`decode_partitions`."""
    listed = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return json_object([("version", 1), ("partitions", listed)])
