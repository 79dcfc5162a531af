"""Reads per-partition errors out of responses that name every partition of the request.

An answer to a large request is tens of thousands of entries that nothing follows from, in the order
of a hash map of the broker. Reading them one by one took longer than sending the request. So whole
blocks of entries are recognised at once, and only the others are read one by one.
"""

from __future__ import annotations

import functools
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from regent.model.partition import TopicPartition
from regent.protocol.primitives import (
    DecodeError,
    read_array_length,
    read_string,
    skip_tags,
    unpack_int16,
    unpack_int32,
)

NO_ERROR: Final = b"\x00"
"""Codes of partitions that nothing has happened to, as the readers below take them."""

_BLOCK: Final = 128
_LONGEST_TOPIC_NAME: Final = 249
_PARTITION_ERROR_SIZE: Final = 7
_unpack_partition_error: Final = struct.Struct(">ih").unpack_from


def read_error_code(data: bytes, offset: int) -> tuple[int, int]:
    """Raises DecodeError if the buffer ends early."""
    if offset + 2 > len(data):
        raise DecodeError("the buffer ends within an error code")
    return unpack_int16(data, offset)[0], offset + 2


def read_errors_by_name(
    data: bytes, offset: int, *, flexible: bool, ignored: bytes = NO_ERROR
) -> tuple[dict[TopicPartition, int], int]:
    """An array of (topic name, partition, error code): codes by partition, and the offset behind.

    Args:
        ignored: Error codes (0 to 255) whose partitions are left out.

    Raises:
        DecodeError: If the array does not fit into the buffer.
    """
    count, offset = read_array_length(data, offset, flexible=flexible)
    errors: dict[TopicPartition, int] = {}
    match_block = _block_of_ignored(flexible=flexible, ignored=ignored).match
    try:
        while count > 0:
            if count >= _BLOCK and (block := match_block(data, offset)) is not None:
                offset = block.end()
                count -= _BLOCK
                continue
            for _ in range(min(count, _BLOCK)):
                topic, offset = read_string(data, offset, flexible=flexible)
                (partition,) = unpack_int32(data, offset)
                code, offset = read_error_code(data, offset + 4)
                if flexible:
                    offset = skip_tags(data, offset)
                if not (0 <= code <= 255 and code in ignored):
                    errors[TopicPartition(topic, partition)] = code
            count -= _BLOCK
    except (IndexError, struct.error) as error:
        raise DecodeError("the buffer ends within the partition errors") from error
    return errors, offset


@functools.cache
def _block_of_ignored(*, flexible: bool, ignored: bytes) -> re.Pattern[bytes]:
    """A block of entries with topic names of any length, whose codes are ignored ones.

    An entry says how long its name is, so there is one alternative for each length.
    """
    names = b"|".join(
        re.escape(_length_prefix(length, flexible=flexible)) + b".{%d}" % length
        for length in range(1, _LONGEST_TOPIC_NAME + 1)
    )
    codes = b"[" + b"".join(b"\\x%02x" % code for code in ignored) + b"]"
    no_tags = rb"\x00" if flexible else b""
    entry = b"(?:" + names + rb").{4}\x00" + codes + no_tags
    return re.compile(b"(?s:" + entry + b"){%d}" % _BLOCK)


def _length_prefix(length: int, *, flexible: bool) -> bytes:
    if not flexible:
        return length.to_bytes(2, "big")
    length += 1
    return bytes((length,)) if length < 0x80 else bytes((length & 0x7F | 0x80, length >> 7))


def read_errors_by_topic_id(
    data: bytes,
    offset: int,
    *,
    names: Callable[[], Mapping[uuid.UUID, str]],
    ignored: bytes = NO_ERROR,
) -> tuple[dict[TopicPartition, int], int]:
    """An array of topic ids, each with an array of (partition, error code), flexible encoding.

    Args:
        names: Gives the names of the ids that the request named; it is asked only if there is an
            error. Errors of other ids are left out: they answer nothing that was asked.
        ignored: Error codes (0 to 255) whose partitions are left out.

    Raises:
        DecodeError: If an array does not fit into the buffer.
    """
    count, offset = read_array_length(data, offset, flexible=True)
    by_id: list[tuple[bytes, int, int]] = []
    for _ in range(count):
        topic_id = data[offset : offset + 16]
        partition_count, offset = read_array_length(data, offset + 16, flexible=True)
        end = offset + partition_count * _PARTITION_ERROR_SIZE
        chunk = data[offset:end]
        # The two bytes of the error codes, and the tagged fields behind them.
        if not (any(chunk[4::7]) or chunk[5::7].translate(None, ignored) or any(chunk[6::7])):
            if end > len(data):
                raise DecodeError("the buffer ends within the partition errors")
            offset = skip_tags(data, end)
            continue
        for _ in range(partition_count):
            if offset + _PARTITION_ERROR_SIZE > len(data):
                raise DecodeError("the buffer ends within the partition errors")
            partition, code = _unpack_partition_error(data, offset)
            offset = skip_tags(data, offset + 6)
            if not (0 <= code <= 255 and code in ignored):
                by_id.append((topic_id, partition, code))
        offset = skip_tags(data, offset)
    if not by_id:
        return {}, offset
    known = names()
    return {
        TopicPartition(topic, partition): code
        for topic_id, partition, code in by_id
        if (topic := known.get(uuid.UUID(bytes=topic_id))) is not None
    }, offset


def expect_end(data: bytes, offset: int, *, flexible: bool) -> None:
    """Check that nothing but the closing tagged fields is left.

    Raises:
        DecodeError: If there is more, or less.
    """
    if flexible:
        offset = skip_tags(data, offset)
    if offset != len(data):
        raise DecodeError(f"{len(data) - offset} bytes follow the response")
