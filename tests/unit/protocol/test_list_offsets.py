"""ListOffsets version 1, byte by byte."""

from __future__ import annotations

import struct

import pytest

from regent.protocol.list_offsets import (
    EARLIEST,
    LATEST,
    ListedOffset,
    decode_list_offsets,
    encode_list_offsets,
)
from regent.protocol.primitives import DecodeError


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def test_several_topics_are_asked_for_at_once() -> None:
    assert encode_list_offsets({"a": [0, 7], "bc": [1]}, at=LATEST) == b"".join(
        [
            struct.pack(">ii", -1, 2),
            *(text("a"), struct.pack(">i", 2), struct.pack(">iqiq", 0, -1, 7, -1)),
            *(text("bc"), struct.pack(">i", 1), struct.pack(">iq", 1, -1)),
        ]
    )
    assert encode_list_offsets({"a": [0]}, at=EARLIEST).endswith(struct.pack(">iq", 0, -2))


def test_errors_are_told_with_their_partitions() -> None:
    body = b"".join(
        [
            struct.pack(">i", 1),
            *(text("a"), struct.pack(">i", 2)),
            struct.pack(">ihqq", 0, 0, -1, 42),
            struct.pack(">ihqq", 7, 6, -1, -1),
        ]
    )
    listed = [ListedOffset("a", 0, 0, 42), ListedOffset("a", 7, 6, -1)]
    assert list(decode_list_offsets(body)) == listed
    with pytest.raises(DecodeError):
        list(decode_list_offsets(body[:-1]))
