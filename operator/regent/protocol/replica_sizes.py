"""DescribeLogDirs (KIP-113) for some partitions: how many bytes of them a broker has.

What the controller asks for itself is in :mod:`regent.protocol.describe_log_dirs`. Versions 0 and 1
have the same bytes.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Collection
from typing import Final

from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.protocol.error_codes import NONE
from regent.protocol.primitives import LEGACY, Reader

_REPLICA: Final = struct.Struct(">iqq?")
"""Partition, bytes, offset lag, and whether it is a copy between two directories."""


def encode_replica_sizes_request(partitions: Collection[TopicPartition]) -> bytes:
    """The request body, the same in versions 0 and 1."""
    by_topic = [
        (topic, tuple(tp.partition for tp in group))
        for topic, group in itertools.groupby(sorted(partitions), key=lambda tp: tp.topic)
    ]
    return LEGACY.array_length(len(by_topic)) + b"".join(
        LEGACY.string(topic) + LEGACY.int32_array(indexes) for topic, indexes in by_topic
    )


def decode_replica_sizes_response(body: bytes) -> ReplicaSizes | None:
    """What a broker has answered; None: it does not tell us, who may not describe the cluster.

    A broker has at least one log directory, and lists none to those without the right. These
    versions have no error code for the whole answer.

    Raises:
        DecodeError: If the body is malformed.
    """
    reader = Reader(body)
    reader.int32()  # throttle time
    sizes: dict[TopicPartition, int] = {}
    failed: list[str] = []
    directories = reader.array_length()
    for _ in range(directories):
        code, directory = reader.int16(), reader.string()
        if code != NONE:
            failed.append(directory)
        for _ in range(reader.array_length()):
            topic = reader.string()
            replicas = reader.fixed_size_array(_REPLICA.size)
            for partition, size, _, is_future in _REPLICA.iter_unpack(replicas):
                if not is_future:
                    sizes[TopicPartition(topic, partition)] = size
    return ReplicaSizes(sizes, tuple(failed)) if directories else None
