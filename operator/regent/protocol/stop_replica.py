"""StopReplica: from a batch to request bodies, and from a response body to its errors.

Versions and their fields: ``entities/stop_replica.py``. Up to version 2 the delete flag belongs to
the request, so what a broker is to stop may take two requests: the one that deletes goes first, as
in Kafka.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from regent.model.partition import TopicPartition
from regent.protocol.control_requests import (
    ControlRequests,
    StopReplicaPartition,
    StopReplicaResponse,
)
from regent.protocol.partition_sections import topics_section, ungrouped_section
from regent.protocol.primitives import (
    FLEXIBLE,
    LEGACY,
    NO_TAGS,
    pack_int32,
    pack_int64,
)
from regent.protocol.response_errors import expect_end, read_error_code, read_errors_by_name

API_KEY: Final = 5
VERSIONS: Final = range(5)

_GROUPED_SINCE: Final = 1
_PER_PARTITION_SINCE: Final = 3
_KRAFT_FLAG_SINCE: Final = 4

_pack_partition: Final = struct.Struct(">ii?").pack

Partitions = Mapping[TopicPartition, StopReplicaPartition]


def is_flexible(version: int) -> bool:
    return version >= 2


def split(partitions: Partitions, *, version: int) -> list[Partitions]:
    """What one broker is to stop, as one mapping per request, in the order of sending."""
    if version >= _PER_PARTITION_SINCE:
        return [partitions]
    halves: tuple[dict[TopicPartition, StopReplicaPartition], ...] = ({}, {})
    for tp, stop in partitions.items():
        halves[not stop.delete][tp] = stop
    return [half for half in halves if half]


def encode_stop_replica(
    requests: ControlRequests, broker_id: int, *, version: int, partitions: Partitions
) -> bytes:
    """The request body for one receiver and one of the mappings that :func:`split` made."""
    encoding = FLEXIBLE if is_flexible(version) else LEGACY
    parts = [pack_int32(requests.controller_id)]
    if version >= _KRAFT_FLAG_SINCE:
        parts.append(b"\x00")
    parts.append(pack_int32(requests.controller_epoch))
    if version >= _GROUPED_SINCE:
        parts.append(pack_int64(requests.brokers[broker_id].epoch))
    if version < _PER_PARTITION_SINCE:
        delete = any(stop.delete for stop in partitions.values())
        parts.append(b"\x01" if delete else b"\x00")
    topics: dict[str, list[bytes]] = {}
    for tp, stop in partitions.items():
        topics.setdefault(tp.topic, []).append(_entry(tp.partition, stop, version=version))
    if version >= _GROUPED_SINCE:
        parts += topics_section(topics, encoding.string, encoding=encoding)
    else:
        parts += ungrouped_section(topics, encoding=encoding)
    parts.append(encoding.tags)
    return b"".join(parts)


def _entry(partition: int, stop: StopReplicaPartition, *, version: int) -> bytes:
    if version < _PER_PARTITION_SINCE:
        return pack_int32(partition)
    return _pack_partition(partition, stop.leader_epoch, stop.delete) + NO_TAGS


def decode_stop_replica_response(
    version: int, body: bytes, *, broker_id: int, partitions: Partitions
) -> StopReplicaResponse:
    """Decode a broker's answer to the request for ``partitions``.

    Raises:
        DecodeError: If the body is malformed.
    """
    flexible = is_flexible(version)
    error_code, offset = read_error_code(body, 0)
    errors, offset = read_errors_by_name(body, offset, flexible=flexible)
    expect_end(body, offset, flexible=flexible)
    return StopReplicaResponse(
        broker_id=broker_id,
        error_code=error_code,
        partition_errors=errors,
        partitions=partitions,
    )
