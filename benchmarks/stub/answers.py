"""Answers of a stub broker, straight from the bytes of the request.

LeaderAndIsr is answered honestly, with one entry for each partition that the request names. A
request holds up to hundreds of thousands of them, so they are not decoded one by one: the entries
of a topic usually have all the same size (a cluster has one replication factor), and then a
partition number is found at a fixed stride and moved to its place in the answer by slices. Entries
of different sizes are walked.
"""

import functools
import struct
from typing import NamedTuple

LEADER_AND_ISR = 4
STOP_REPLICA = 5
UPDATE_METADATA = 6
CONTROL_APIS = (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)

# the first version in the flexible encoding: all that the brokers of Kafka 2.4 and later are sent
FIRST_FLEXIBLE = {LEADER_AND_ISR: 4, STOP_REPLICA: 2, UPDATE_METADATA: 6}

STALE_CONTROLLER_EPOCH = 11

_HEADER = struct.Struct(">hhih")
_INT32 = struct.Struct(">i")
_PREFIX_SIZE = 16  # of a partition: index, controller epoch, leader, leader epoch


class UnsupportedRequestError(Exception):
    """Nothing that a stub broker knows; its connection is to be closed."""


class Header(NamedTuple):
    """The header of a request; `end` is the offset of its body."""

    api_key: int
    version: int
    correlation_id: int
    end: int


class LeaderAndIsrAnswer(NamedTuple):
    """The body of an answer, and how many partitions it speaks of."""

    body: bytes
    partitions: int


def read_header(frame: bytes | bytearray) -> Header:
    """Header of a request, whose tagged fields must be empty.

    Raises:
        UnsupportedRequestError: a control request in one of the oldest versions.
    """
    api_key, version, correlation_id, length = _HEADER.unpack_from(frame)
    end = _HEADER.size + max(length, 0)
    if api_key in FIRST_FLEXIBLE:
        if version < FIRST_FLEXIBLE[api_key]:
            raise UnsupportedRequestError(f"version {version} of API {api_key}")
        if frame[end]:
            raise UnsupportedRequestError(f"tagged fields in the header of API {api_key}")
        end += 1
    return Header(api_key, version, correlation_id, end)


def controller_epoch(frame: bytes | bytearray, header: Header) -> int:
    """The controller epoch of a control request."""
    since = {LEADER_AND_ISR: 7, STOP_REPLICA: 4, UPDATE_METADATA: 8}[header.api_key]
    offset = header.end + (5 if header.version >= since else 4)
    epoch: int = _INT32.unpack_from(frame, offset)[0]
    return epoch


def response(correlation_id: int, body: bytes, *, flexible: bool) -> bytes:
    """A whole answer, length included."""
    tags = b"\0" if flexible else b""
    return struct.pack(">ii", 4 + len(tags) + len(body), correlation_id) + tags + body


def update_metadata_answer(error: int = 0) -> bytes:
    """Body of the answer to UpdateMetadata."""
    return struct.pack(">h", error) + b"\0"


def leader_and_isr_error(error: int) -> bytes:
    """Body of an answer to LeaderAndIsr that names no partition."""
    return struct.pack(">h", error) + b"\1\0"


def leader_and_isr_answer(frame: bytes | bytearray, header: Header) -> LeaderAndIsrAnswer:
    """Every partition of the request, each without an error."""
    version = header.version
    offset = header.end + 16 + (version >= 5) + (version >= 7)
    topics, offset = read_uvarint(frame, offset)
    parts: list[bytes | bytearray] = []
    total = 0
    for _ in range(topics - 1):
        start = offset
        length, offset = read_uvarint(frame, offset)
        offset += length - 1
        name = bytes(frame[start:offset])
        topic_id = b""
        if version >= 5:
            topic_id = bytes(frame[offset : offset + 16])
            offset += 16
        count, offset = read_uvarint(frame, offset)
        count -= 1
        indices, offset = _partition_indices(frame, offset, count, recovery_state=version >= 6)
        offset += 1  # tagged fields of the topic
        total += count
        if version < 5:
            parts.append(_fill(name, count, indices))
        else:
            parts += [topic_id, uvarint(count + 1), _fill(b"", count, indices), b"\0"]
    groups = total if version < 5 else topics - 1
    return LeaderAndIsrAnswer(
        b"".join([b"\0\0", uvarint(groups + 1), *parts, b"\0"]), partitions=total
    )


def uvarint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def read_uvarint(data: bytes | bytearray, offset: int) -> tuple[int, int]:
    """Inverse of `uvarint`, with the offset behind it."""
    byte = data[offset]
    if byte < 0x80:
        return byte, offset + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        offset += 1
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, offset + 1


def _partition_indices(
    frame: bytes | bytearray, offset: int, count: int, *, recovery_state: bool
) -> tuple[tuple[bytes | bytearray, ...], int]:
    """The four bytes of the partition numbers, as four strings; and the offset behind them all."""
    if not count:
        return (b"", b"", b"", b""), offset
    lengths, size = _array_lengths(frame, offset, recovery_state=recovery_state)
    end = offset + size * count
    for place in lengths:
        column = frame[offset + place : end : size]
        if column.count(frame[offset + place]) != count:
            return _walk(frame, offset, count, recovery_state=recovery_state)
    return tuple(frame[offset + byte : end : size] for byte in range(4)), end


def _array_lengths(
    frame: bytes | bytearray, offset: int, *, recovery_state: bool
) -> tuple[tuple[int, ...], int]:
    """Where in an entry the lengths of its arrays (and tags) are, and the size of the entry.

    Lengths are one byte each up to 126 replicas. If they are the same in each entry of a topic, the
    entries have the same size.
    """
    isr = _PREFIX_SIZE
    replicas = isr + 1 + 4 * (frame[offset + isr] - 1) + 4
    adding = replicas + 1 + 4 * (frame[offset + replicas] - 1)
    removing = adding + 1 + 4 * (frame[offset + adding] - 1)
    is_new = removing + 1 + 4 * (frame[offset + removing] - 1)
    tags = is_new + 1 + recovery_state
    if frame[offset + tags]:
        raise UnsupportedRequestError("tagged fields in a partition of LeaderAndIsr")
    return (isr, replicas, adding, removing, tags), tags + 1


def _walk(
    frame: bytes | bytearray, offset: int, count: int, *, recovery_state: bool
) -> tuple[tuple[bytes, ...], int]:
    """The same for entries of different sizes."""
    indices = bytearray()
    for _ in range(count):
        indices += frame[offset : offset + 4]
        offset += _array_lengths(frame, offset, recovery_state=recovery_state)[1]
    return tuple(bytes(indices[byte::4]) for byte in range(4)), offset


def _fill(name: bytes, count: int, indices: tuple[bytes | bytearray, ...]) -> bytearray:
    """The entries of a topic: (name), partition number, no error, no tagged fields."""
    entries = bytearray(_entries_template(name, count))
    size = len(name) + 7
    for byte, column in enumerate(indices):
        entries[len(name) + byte :: size] = column
    return entries


@functools.lru_cache(maxsize=65536)
def _entries_template(name: bytes, count: int) -> bytes:
    return (name + bytes(7)) * count
