"""DescribeLogDirs (KIP-113): which log directories of a broker are offline, and what is in them.

Versions 0 and 1 have the same bytes, and every supported broker answers one of them. Where no topic
is named, the answer lists the directories without what is in them.
"""

from __future__ import annotations

import struct
from typing import Final

from regent.protocol.control_requests import DescribeLogDirsRequest, DescribeLogDirsResponse
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED, NONE
from regent.protocol.primitives import Reader, pack_int32

API_KEY: Final = 35
VERSIONS: Final = range(2)

_NO_TOPICS: Final = pack_int32(0)
_ALL_TOPICS: Final = pack_int32(-1)
_REPLICA: Final = struct.Struct(">iqq?")
"""Partition, bytes, offset lag, and whether it is a future replica: a copy on its way from one
directory of the broker to another."""


def encode_describe_log_dirs(request: DescribeLogDirsRequest) -> bytes:
    """The request body, the same in every version."""
    return _ALL_TOPICS if request.lists_replicas else _NO_TOPICS


def decode_describe_log_dirs_response(
    request: DescribeLogDirsRequest, body: bytes
) -> DescribeLogDirsResponse:
    """Decode a broker's answer to a request.

    A broker has at least one directory. These versions have no error code for the whole answer: a
    broker lists none to a user without the right to describe the cluster, and that is read as
    CLUSTER_AUTHORIZATION_FAILED.

    Raises:
        DecodeError: If the body is malformed.
    """
    reader = Reader(body)
    reader.int32()  # throttle time
    log_dirs: dict[str, int] = {}
    replicas: dict[str, dict[int, int]] = {}
    for _ in range(reader.array_length()):
        code = reader.int16()
        log_dirs[reader.string()] = code
        for _ in range(reader.array_length()):
            topic = reader.string()
            sizes = replicas.setdefault(topic, {})
            for partition, size, _, is_future in _REPLICA.iter_unpack(
                reader.fixed_size_array(_REPLICA.size)
            ):
                if not is_future:
                    sizes[partition] = size
    header = request.header
    return DescribeLogDirsResponse(
        broker_id=header.broker_id,
        error_code=NONE if log_dirs else CLUSTER_AUTHORIZATION_FAILED,
        log_dirs=log_dirs,
        replicas=replicas if request.lists_replicas and log_dirs else None,
        controller_epoch=header.controller_epoch,
        broker_epoch=header.broker_epoch,
    )
