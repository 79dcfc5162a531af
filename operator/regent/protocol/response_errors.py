"""Reads per-partition errors out of responses that name every partition of the request.

A healthy answer to a large request is tens of thousands of entries that all say "no error", so the
readers look only at the error code of an entry and build something for the others alone.
"""

from __future__ import annotations

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

_NO_ERROR_NO_TAGS: Final = b"\x00\x00\x00"
_PARTITION_ERROR_SIZE: Final = 7
_unpack_partition_error: Final = struct.Struct(">ih").unpack_from


def read_error_code(data: bytes, offset: int) -> tuple[int, int]:
    """Raises DecodeError if the buffer ends early."""
    if offset + 2 > len(data):
        raise DecodeError("the buffer ends within an error code")
    return unpack_int16(data, offset)[0], offset + 2


def read_errors_by_name(
    data: bytes, offset: int, *, flexible: bool
) -> tuple[dict[TopicPartition, int], int]:
    """An array of (topic name, partition, error code): the non-zero codes, and the offset behind.

    Raises:
        DecodeError: If the array does not fit into the buffer.
    """
    count, offset = read_array_length(data, offset, flexible=flexible)
    errors: dict[TopicPartition, int] = {}
    size = len(data)
    try:
        for _ in range(count):
            start = offset
            if flexible:
                # Names below 127 bytes have a length of one byte; the others take the long way.
                offset += data[offset] + 4
                if (
                    data[start] > 1
                    and data[start] < 0x80
                    and data[offset : offset + 3] == (_NO_ERROR_NO_TAGS)
                ):
                    offset += 3
                    continue
            else:
                offset += (data[offset] << 8) + data[offset + 1] + 6
                if data[offset : offset + 2] == b"\x00\x00":
                    offset += 2
                    continue
            topic, offset = read_string(data, start, flexible=flexible)
            (partition,) = unpack_int32(data, offset)
            code, offset = read_error_code(data, offset + 4)
            if flexible:
                offset = skip_tags(data, offset)
            if code:
                errors[TopicPartition(topic, partition)] = code
    except (IndexError, struct.error) as error:
        raise DecodeError("the buffer ends within the partition errors") from error
    if offset > size:
        raise DecodeError("the buffer ends within the partition errors")
    return errors, offset


def read_errors_by_topic_id(
    data: bytes, offset: int, *, names: Callable[[], Mapping[uuid.UUID, str]]
) -> tuple[dict[TopicPartition, int], int]:
    """An array of topic ids, each with an array of (partition, error code), flexible encoding.

    ``names`` gives the names of the ids that the request named; it is asked only if there is an
    error. Errors of other ids are left out: they answer nothing that was asked.

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
        # Error codes and the tagged fields behind them: zero bytes where all is well.
        if not (any(chunk[4::7]) or any(chunk[5::7]) or any(chunk[6::7])):
            if end > len(data):
                raise DecodeError("the buffer ends within the partition errors")
            offset = skip_tags(data, end)
            continue
        for _ in range(partition_count):
            if offset + _PARTITION_ERROR_SIZE > len(data):
                raise DecodeError("the buffer ends within the partition errors")
            partition, code = _unpack_partition_error(data, offset)
            offset = skip_tags(data, offset + 6)
            if code:
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
