"""Answers of a stub broker, straight from the bytes of the request.

LeaderAndIsr is answered honestly, with one entry for each partition that the request names. A
request holds up to hundreds of thousands of them, so they are not decoded one by one: the entries
of a topic usually have all the same size (a cluster has one replication factor), and then a
partition number is found at a fixed stride and moved to its place in the answer by slices. Entries
of different sizes are walked. Topics of one partition have a way of their own, without columns: all
stub brokers share one thread, in which what thousands of small topics cost would be measured, too.

As in a broker, a partition is answered without an error if its leader epoch is new to the broker,
and with STALE_CONTROLLER_EPOCH if it is the one that the broker has, which is the normal case after
a failover (``ReplicaManager.becomeLeaderOrFollower``). Entries come in the order of the request; a
broker's come in that of a hash map.
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

# the first version that says whether the controller is one of KRaft, in a byte behind its id
KRAFT_FLAG_SINCE = {LEADER_AND_ISR: 7, STOP_REPLICA: 4, UPDATE_METADATA: 8}

STOP_REPLICA_VERSION = 3
"""What is sent at inter.broker.protocol.version 2.6."""

LEADER_AND_ISR_VERSIONS = (4, 8)
"""The first that is understood, and the first that is not known."""

STALE_CONTROLLER_EPOCH = 11

_HEADER = struct.Struct(">hhih")
_INT32 = struct.Struct(">i")
_LEADER_EPOCH = 12
_PREFIX_SIZE = 16  # of a partition: index, controller epoch, leader, leader epoch
_STOPPED_SIZE = 10  # index, leader epoch, whether to delete, no tagged fields


class UnsupportedRequestError(Exception):
    """Nothing that a stub broker knows; its connection is to be closed."""


class Header(NamedTuple):
    """The header of a request; `end` is the offset of its body."""

    api_key: int
    version: int
    correlation_id: int
    end: int


Columns = tuple[bytes | bytearray, ...]
"""One number of each partition of a topic, as four strings of bytes: the highest bytes first."""


class _Answered(NamedTuple):
    """A topic as it was last sent in a LeaderAndIsr, and what is answered if it is sent again.

    Attributes:
        section: Everything behind the topic's name.
        answer: Everything of the topic; all errors are STALE_CONTROLLER_EPOCH.
        partitions: How many.
    """

    section: bytes
    answer: bytes
    partitions: int


class HostedPartitions:
    """Leader epochs of the partitions that one stub broker has been notified of.

    Attributes:
        answered: By the version of the request, and the topic's name with its length. Who takes
            over sends most of a large cluster as it was sent before: no stub broker is to be the
            one that a controller waits for.
    """

    def __init__(self) -> None:
        self.answered: dict[tuple[int, bytes], _Answered] = {}
        self._as_sent: dict[bytes, tuple[Columns, Columns]] = {}
        self._epochs: dict[bytes, dict[bytes, int]] = {}

    def errors(self, name: bytes, indices: Columns, epochs: Columns) -> bytes:
        """One error code for each partition of a topic; remembers its leader epochs.

        A topic whose partitions are all sent as they were the last time is not walked.
        """
        count = len(indices[0])
        if self._as_sent.get(name) == (indices, epochs):
            return bytes((STALE_CONTROLLER_EPOCH,)) * count
        self._as_sent[name] = (indices, epochs)
        known = self._epochs.setdefault(name, {})
        codes = bytearray(count)
        for at, (index, epoch) in enumerate(zip(_rows(indices), _rows(epochs), strict=True)):
            (leader_epoch,) = _INT32.unpack(epoch)
            if leader_epoch > known.get(index, -1):
                known[index] = leader_epoch
            else:
                codes[at] = STALE_CONTROLLER_EPOCH
        return bytes(codes)

    def error(self, name: bytes, index: bytes, epoch: bytes) -> int:
        """The same for a topic of one partition."""
        known = self._epochs.get(name)
        if known is None:
            known = self._epochs[name] = {}
        (leader_epoch,) = _INT32.unpack(epoch)
        if leader_epoch <= known.get(index, -1):
            return STALE_CONTROLLER_EPOCH
        known[index] = leader_epoch
        return 0

    def forget(self, name: bytes, indices: Columns) -> None:
        """Partitions of a topic are deleted: the next ones of that name are new."""
        self._as_sent.pop(name, None)
        for version in range(*LEADER_AND_ISR_VERSIONS):
            self.answered.pop((version, name), None)
        known = self._epochs.get(name, {})
        for index in _rows(indices):
            known.pop(index, None)
        if not known:
            self._epochs.pop(name, None)


def _rows(columns: Columns) -> list[bytes]:
    return [bytes(row) for row in zip(*columns, strict=True)]


class PartitionsAnswer(NamedTuple):
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
    offset = header.end + 4 + (header.version >= KRAFT_FLAG_SINCE[header.api_key])
    epoch: int = _INT32.unpack_from(frame, offset)[0]
    return epoch


def response(correlation_id: int, body: bytes, *, flexible: bool) -> bytes:
    """A whole answer, length included."""
    tags = b"\0" if flexible else b""
    return struct.pack(">ii", 4 + len(tags) + len(body), correlation_id) + tags + body


def update_metadata_answer(error: int = 0) -> bytes:
    """Body of the answer to UpdateMetadata."""
    return struct.pack(">h", error) + b"\0"


def error_without_partitions(error: int) -> bytes:
    """Body of an answer to LeaderAndIsr or StopReplica that names no partition."""
    return struct.pack(">h", error) + b"\1\0"


def leader_and_isr_answer(
    frame: bytes | bytearray, header: Header, hosted: HostedPartitions
) -> PartitionsAnswer:
    """Every partition of the request, with the error that a broker which hosts these has for it."""
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
        answered = hosted.answered.get((version, name))
        if answered is not None and frame.startswith(answered.section, offset):
            parts.append(answered.answer)
            total += answered.partitions
            offset += len(answered.section)
            continue
        section = offset
        topic_id = b""
        if version >= 5:
            topic_id = bytes(frame[offset : offset + 16])
            offset += 16
        count, offset = read_uvarint(frame, offset)
        count -= 1
        total += count
        if count == 1:
            index = bytes(frame[offset : offset + 4])
            epoch = bytes(frame[offset + _LEADER_EPOCH : offset + _PREFIX_SIZE])
            offset += _array_lengths(frame, offset, recovery_state=version >= 6)[1] + 1
            error = bytes((0, hosted.error(name, index, epoch), 0))
            parts += (name, index, error) if version < 5 else (topic_id, b"\2", index, error, b"\0")
            continue
        indices, epochs, offset = _partitions(frame, offset, count, recovery_state=version >= 6)
        errors = hosted.errors(name, indices, epochs)
        offset += 1  # tagged fields of the topic
        stale = bytes((STALE_CONTROLLER_EPOCH,)) * count
        answer, again = (
            _topic_answer(version, name, topic_id, count, indices, each) for each in (errors, stale)
        )
        parts.append(answer)
        hosted.answered[version, name] = _Answered(bytes(frame[section:offset]), again, count)
    groups = total if version < 5 else topics - 1
    return PartitionsAnswer(
        b"".join([b"\0\0", uvarint(groups + 1), *parts, b"\0"]), partitions=total
    )


def _topic_answer(
    version: int, name: bytes, topic_id: bytes, count: int, indices: Columns, errors: bytes
) -> bytes:
    if version < 5:
        return bytes(_fill(name, count, indices, errors))
    return b"".join((topic_id, uvarint(count + 1), _fill(b"", count, indices, errors), b"\0"))


def stop_replica_answer(
    frame: bytes | bytearray, header: Header, hosted: HostedPartitions
) -> PartitionsAnswer:
    """Every partition of the request, without an error. All of a topic are deleted, or none."""
    if header.version != STOP_REPLICA_VERSION:
        raise UnsupportedRequestError(f"version {header.version} of StopReplica")
    topics, offset = read_uvarint(frame, header.end + 16)
    parts: list[bytes | bytearray] = []
    total = 0
    for _ in range(topics - 1):
        start = offset
        length, offset = read_uvarint(frame, offset)
        offset += length - 1
        name = bytes(frame[start:offset])
        count, offset = read_uvarint(frame, offset)
        count -= 1
        end = offset + _STOPPED_SIZE * count
        if count == 1 and not frame[offset + 8]:
            parts.append(name + bytes(frame[offset : offset + 4]) + b"\0\0\0")
            total += 1
            offset = end + 1
            continue
        indices = tuple(frame[offset + byte : end : _STOPPED_SIZE] for byte in range(4))
        if any(frame[offset + 8 : end : _STOPPED_SIZE]):
            hosted.forget(name, indices)
        parts.append(_fill(name, count, indices, bytes(count)))
        total += count
        offset = end + 1  # tagged fields of the topic
    body = b"".join([b"\0\0", uvarint(total + 1), *parts, b"\0"])
    return PartitionsAnswer(body, partitions=total)


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


def _partitions(
    frame: bytes | bytearray, offset: int, count: int, *, recovery_state: bool
) -> tuple[Columns, Columns, int]:
    """The partitions' numbers and leader epochs, and the offset behind them all."""
    if not count:
        return (b"", b"", b"", b""), (b"", b"", b"", b""), offset
    lengths, size = _array_lengths(frame, offset, recovery_state=recovery_state)
    end = offset + size * count
    for place in lengths:
        column = frame[offset + place : end : size]
        if column.count(frame[offset + place]) != count:
            return _walk(frame, offset, count, recovery_state=recovery_state)
    return (
        tuple(frame[offset + byte : end : size] for byte in range(4)),
        tuple(frame[offset + _LEADER_EPOCH + byte : end : size] for byte in range(4)),
        end,
    )


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
) -> tuple[Columns, Columns, int]:
    """The same for entries of different sizes."""
    indices, epochs = bytearray(), bytearray()
    for _ in range(count):
        indices += frame[offset : offset + 4]
        epochs += frame[offset + _LEADER_EPOCH : offset + _PREFIX_SIZE]
        offset += _array_lengths(frame, offset, recovery_state=recovery_state)[1]
    return (
        tuple(bytes(indices[byte::4]) for byte in range(4)),
        tuple(bytes(epochs[byte::4]) for byte in range(4)),
        offset,
    )


def _fill(name: bytes, count: int, indices: Columns, errors: bytes) -> bytearray:
    """The entries of a topic: (name), partition number, error code, no tagged fields."""
    entries = bytearray(_entries_template(name, count))
    size = len(name) + 7
    for byte, column in enumerate(indices):
        entries[len(name) + byte :: size] = column
    entries[len(name) + 5 :: size] = errors
    return entries


@functools.lru_cache(maxsize=65536)
def _entries_template(name: bytes, count: int) -> bytes:
    return (name + bytes(7)) * count
