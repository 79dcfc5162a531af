"""DescribeLogDirs (KIP-113) for some partitions: how many bytes of them a broker has.

Versions 0 and 1 have the same bytes. For everything that a broker has:
:mod:`regent.protocol.log_dirs`, which reads the answers to this question, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.protocol import log_dirs
from regent.protocol.primitives import LEGACY


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

    Raises:
        DecodeError: If the body is malformed.
    """
    found = log_dirs.decode_response(body, version=1)
    if isinstance(found, str):
        return None
    sizes = {
        TopicPartition(topic, partition): size
        for topic, partitions in found.sizes.items()
        for partition, size in partitions.items()
    }
    return ReplicaSizes(sizes, found.offline)
