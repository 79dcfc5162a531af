from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.writers import write_unsigned_varint

from regent.protocol.primitives import (
    FLEXIBLE,
    LEGACY,
    DecodeError,
    read_array_length,
    read_string,
    read_uvarint,
    skip_tags,
    uvarint,
)


@given(st.integers(0, 2**31 - 1))
def test_uvarint(value: int) -> None:
    buffer = io.BytesIO()
    write_unsigned_varint(buffer, value)  # type: ignore[arg-type]
    assert uvarint(value) == buffer.getvalue()
    assert read_uvarint(b"??" + uvarint(value) + b"?", 2) == (value, 2 + len(uvarint(value)))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff\xff", b"\x80" * 6])
def test_uvarint_without_an_end(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_uvarint(data, 0)


@pytest.mark.parametrize("encoding", [LEGACY, FLEXIBLE])
@given(text=st.text())
def test_strings(encoding: object, text: str) -> None:
    flexible = encoding is FLEXIBLE
    raw = (FLEXIBLE if flexible else LEGACY).string(text)
    assert read_string(raw, 0, flexible=flexible) == (text, len(raw))
    for cut in range(len(raw)):
        with pytest.raises(DecodeError):
            read_string(raw[:cut], 0, flexible=flexible)


@pytest.mark.parametrize(("flexible", "raw"), [(True, b"\x00"), (False, b"\xff\xff")])
def test_null_strings(flexible: bool, raw: bytes) -> None:
    assert (FLEXIBLE if flexible else LEGACY).nullable_string(None) == raw
    with pytest.raises(DecodeError, match="null"):
        read_string(raw, 0, flexible=flexible)


def test_strings_that_are_not_text() -> None:
    with pytest.raises(DecodeError, match="UTF-8"):
        read_string(b"\x02\xff", 0, flexible=True)


def test_the_length_of_a_legacy_string_is_bounded() -> None:
    assert len(LEGACY.string("x" * 32767)) == 32769
    with pytest.raises(ValueError, match="32768 bytes"):
        LEGACY.string("x" * 32768)


@pytest.mark.parametrize(("flexible", "raw"), [(True, b"\x00"), (False, b"\xff\xff\xff\xff")])
def test_null_arrays_are_empty(flexible: bool, raw: bytes) -> None:
    assert read_array_length(raw, 0, flexible=flexible) == (0, len(raw))


def test_an_array_cannot_have_more_elements_than_bytes_follow() -> None:
    for raw, flexible in ((b"\x00\x00\x00\x03ab", False), (b"\x04ab", True), (b"\x00", False)):
        with pytest.raises(DecodeError):
            read_array_length(raw, 0, flexible=flexible)


def test_tags_are_skipped_by_their_sizes() -> None:
    assert skip_tags(b"\x02\x00\x01\xaa\x05\x02\xbb\xcc!", 0) == 8
    with pytest.raises(DecodeError):
        skip_tags(b"\x01\x00\x05\xaa", 0)
