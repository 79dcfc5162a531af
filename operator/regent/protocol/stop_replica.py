"""StopReplica: from a request to its body, and from a response body to its errors.

Versions and their fields: ``entities/stop_replica.py``.
"""

from __future__ import annotations

import struct
from typing import Final

from regent.protocol.control_requests import (
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from regent.protocol.primitives import (
    FLEXIBLE,
    LEGACY,
    NO_TAGS,
    pack_int32,
    pack_int64,
)
from regent.protocol.response_errors import expect_end, read_error_code, read_errors_by_name
from regent.protocol.topic_sections import by_topic, topics_section, ungrouped_section

API_KEY: Final = 5
VERSIONS: Final = range(5)

_GROUPED_SINCE: Final = 1
_PER_PARTITION_SINCE: Final = 3
_KRAFT_FLAG_SINCE: Final = 4

_pack_partition: Final = struct.Struct(">ii?").pack


def is_flexible(version: int) -> bool:
    return version >= 2


def encode_stop_replica(request: StopReplicaRequest, *, version: int) -> bytes:
    """The request body.

    Up to version 2 the delete flag belongs to the request, which deletes if any partition is to be
    deleted.
    """
    encoding = FLEXIBLE if is_flexible(version) else LEGACY
    header, partitions = request.header, request.partitions
    parts = [pack_int32(header.controller_id)]
    if version >= _KRAFT_FLAG_SINCE:
        parts.append(b"\x00")
    parts.append(pack_int32(header.controller_epoch))
    if version >= _GROUPED_SINCE:
        parts.append(pack_int64(header.broker_epoch))
    if version < _PER_PARTITION_SINCE:
        delete = any(stop.delete for stop in partitions.values())
        parts.append(b"\x01" if delete else b"\x00")
    entries = [_entry(tp.partition, stop, version=version) for tp, stop in partitions.items()]
    topics = by_topic(partitions, entries)
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
    request: StopReplicaRequest, body: bytes, *, version: int
) -> StopReplicaResponse:
    """Decode a broker's answer to a request.

    Raises:
        DecodeError: If the body is malformed.
    """
    flexible = is_flexible(version)
    error_code, offset = read_error_code(body, 0)
    errors, offset = read_errors_by_name(body, offset, flexible=flexible)
    expect_end(body, offset, flexible=flexible)
    header = request.header
    return StopReplicaResponse(
        broker_id=header.broker_id,
        error_code=error_code,
        partition_errors=errors,
        partitions=request.partitions,
        controller_epoch=header.controller_epoch,
        broker_epoch=header.broker_epoch,
    )
