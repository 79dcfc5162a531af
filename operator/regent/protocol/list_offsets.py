"""ListOffsets as a client asks, in version 1: every broker with ZooKeeper understands it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from regent.protocol.primitives import LEGACY, Reader, pack_int32

API_KEY: Final = 2
VERSION: Final = 1

LATEST: Final = -1
"""The high watermark, the end of the log as consumers see it."""

EARLIEST: Final = -2
"""The first offset of the log."""

_CLIENT: Final = pack_int32(-1)
"""Instead of the id of a replica."""


class ListedOffset(NamedTuple):
    """What a broker says of one partition.

    Attributes:
        error: Kafka's error code; 0: none.
        offset: -1 with an error.
    """

    topic: str
    partition: int
    error: int
    offset: int


def encode_list_offsets(topics: Mapping[str, Iterable[int]], *, at: int) -> bytes:
    """Ask for one end of the logs.

    Args:
        topics: Partitions by their topics.
        at: :data:`LATEST` or :data:`EARLIEST`.
    """
    parts = [_CLIENT, LEGACY.array_length(len(topics))]
    for topic, partitions in topics.items():
        asked = [struct.pack(">iq", partition, at) for partition in partitions]
        parts += [LEGACY.string(topic), LEGACY.array_length(len(asked)), *asked]
    return b"".join(parts)


def decode_list_offsets(body: bytes) -> Iterator[ListedOffset]:
    """What the broker says, in its order.

    Raises:
        DecodeError: If the body is malformed.
    """
    reader = Reader(body)
    for _ in range(reader.array_length()):
        topic = reader.string()
        for _ in range(reader.array_length()):
            partition, error = reader.int32(), reader.int16()
            reader.int64()  # timestamp
            yield ListedOffset(topic, partition, error, reader.int64())
