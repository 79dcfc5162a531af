"""StopReplica: from a request to its body, and from a response body to its errors.

Versions and their fields: ``entities/stop_replica.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from operator import itemgetter
from typing import Final

from regent.model.partition import TopicPartition
from regent.protocol.control_requests import (
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from regent.protocol.primitives import (
    FLEXIBLE,
    LEGACY,
    pack_int32,
    pack_int64,
)
from regent.protocol.response_errors import expect_end, read_error_code, read_errors_by_name
from regent.protocol.topic_sections import by_topic, grouped_section, ungrouped_section

API_KEY: Final = 5
VERSIONS: Final = range(5)

_GROUPED_SINCE: Final = 1
_PER_PARTITION_SINCE: Final = 3
_KRAFT_FLAG_SINCE: Final = 4

_pack_partition: Final = struct.Struct(">ii?x").pack
"""With the byte for no tagged fields."""
_index_of: Final = itemgetter(1)
_epoch_of: Final = itemgetter(0)
_delete_of: Final = itemgetter(1)


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
    entries = _entries(partitions, version)
    if version >= _GROUPED_SINCE:
        parts += grouped_section(partitions, entries, encoding=encoding)
    else:
        parts += ungrouped_section(by_topic(partitions, entries), encoding=encoding)
    parts.append(encoding.tags)
    return b"".join(parts)


def _entries(
    partitions: Mapping[TopicPartition, StopReplicaPartition], version: int
) -> list[bytes]:
    indexes = map(_index_of, partitions)
    if version < _PER_PARTITION_SINCE:
        return list(map(pack_int32, indexes))
    stops = partitions.values()
    return list(map(_pack_partition, indexes, map(_epoch_of, stops), map(_delete_of, stops)))


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
