"""Primitive types of Kafka's wire format, in its legacy and its flexible (KIP-482) encoding.

Writers return bytes that are joined by the caller; readers take a buffer and an offset and return
the value with the offset behind it. Kafka's own description:
https://kafka.apache.org/protocol.html#protocol_types
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Final

import msgspec

NO_TAGS: Final = b"\x00"
"""An empty section of tagged fields, with which every flexible structure ends."""

MAX_LEGACY_STRING_LENGTH: Final = 2**15 - 1
"""Longest string of the legacy encoding in bytes: its length is a signed 16-bit number."""

pack_int16: Final = struct.Struct(">h").pack
pack_int32: Final = struct.Struct(">i").pack
pack_int64: Final = struct.Struct(">q").pack
unpack_int16: Final = struct.Struct(">h").unpack_from
unpack_int32: Final = struct.Struct(">i").unpack_from
_unpack_float64: Final = struct.Struct(">d").unpack


class DecodeError(ValueError):
    """Bytes that are not what their type promises: the peer is not to be trusted any further."""


def uvarint(value: int) -> bytes:
    """A non-negative number in groups of seven bits, the lowest first."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def read_uvarint(data: bytes, offset: int) -> tuple[int, int]:
    """Inverse of :func:`uvarint`, up to 32 bits.

    Raises:
        DecodeError: If the buffer ends early, or the number has more than five groups.
    """
    value = 0
    for index, shift in enumerate(range(0, 35, 7), start=offset):
        if index >= len(data):
            raise DecodeError("the buffer ends within a variable-length number")
        value |= (data[index] & 0x7F) << shift
        if data[index] < 0x80:
            return value, index + 1
    raise DecodeError("a variable-length number has more than five bytes")


def skip_tags(data: bytes, offset: int) -> int:
    """The offset behind a section of tagged fields, none of which anybody here understands.

    Raises:
        DecodeError: If the section does not fit into the buffer.
    """
    count, offset = read_uvarint(data, offset)
    for _ in range(count):
        _, offset = read_uvarint(data, offset)
        size, offset = read_uvarint(data, offset)
        offset += size
    if offset > len(data):
        raise DecodeError("the buffer ends within tagged fields")
    return offset


def read_string(data: bytes, offset: int, *, flexible: bool) -> tuple[str, int]:
    """A string that may not be null.

    Raises:
        DecodeError: If it is null, not UTF-8, or does not fit into the buffer.
    """
    if flexible:
        length, offset = read_uvarint(data, offset)
        length -= 1
    else:
        if offset + 2 > len(data):
            raise DecodeError("the buffer ends within the length of a string")
        (length,) = unpack_int16(data, offset)
        offset += 2
    end = offset + length
    if length < 0 or end > len(data):
        raise DecodeError("a string is null or longer than the buffer")
    try:
        return data[offset:end].decode(), end
    except UnicodeDecodeError as error:
        raise DecodeError("a string is not UTF-8") from error


def read_array_length(data: bytes, offset: int, *, flexible: bool) -> tuple[int, int]:
    """Number of elements; null counts as empty. Raises as :func:`read_nullable_array_length`."""
    length, offset = read_nullable_array_length(data, offset, flexible=flexible)
    return length or 0, offset


def read_nullable_array_length(
    data: bytes, offset: int, *, flexible: bool
) -> tuple[int | None, int]:
    """Number of elements; None for null.

    Raises:
        DecodeError: If the buffer ends early, or cannot hold that many elements of even one byte.
    """
    if flexible:
        length, offset = read_uvarint(data, offset)
        length -= 1
    else:
        if offset + 4 > len(data):
            raise DecodeError("the buffer ends within the length of an array")
        (length,) = unpack_int32(data, offset)
        offset += 4
    if length > len(data) - offset:
        raise DecodeError("an array is longer than the buffer")
    return (None if length < 0 else length), offset


class Int32Arrays(dict[tuple[int, ...], bytes]):
    """Encoded arrays of 32-bit numbers by their value, each made on first use.

    A cluster has few distinct replica lists compared with its partitions, so nearly every look-up
    hits.
    """

    def __init__(self, *, flexible: bool) -> None:
        super().__init__()
        self._length = uvarint_plus_one if flexible else pack_int32

    def __missing__(self, values: tuple[int, ...]) -> bytes:
        encoded = self._length(len(values)) + struct.pack(f">{len(values)}i", *values)
        self[values] = encoded
        return encoded


def uvarint_plus_one(value: int) -> bytes:
    """Length of a compact string or array: 0 stands for null, so 1 for empty."""
    return uvarint(value + 1)


class Encoding(msgspec.Struct, frozen=True):
    """The writers that differ between the legacy and the flexible encoding."""

    flexible: bool

    @property
    def tags(self) -> bytes:
        """What ends a structure without tagged fields."""
        return NO_TAGS if self.flexible else b""

    def array_length(self, length: int) -> bytes:
        return uvarint(length + 1) if self.flexible else pack_int32(length)

    def int32_array(self, values: tuple[int, ...]) -> bytes:
        return self.array_length(len(values)) + struct.pack(f">{len(values)}i", *values)

    def string(self, text: str) -> bytes:
        """Raises ValueError for a string too long for the legacy encoding."""
        raw = text.encode()
        return self.string_length(len(raw)) + raw

    def string_length(self, size: int) -> bytes:
        """What goes ahead of a string of that many bytes. Raises as :meth:`string`."""
        if self.flexible:
            return uvarint(size + 1)
        if size > MAX_LEGACY_STRING_LENGTH:
            raise ValueError(f"a string of {size} bytes is too long for this version")
        return pack_int16(size)

    def nullable_string(self, text: str | None) -> bytes:
        if text is None:
            return b"\x00" if self.flexible else b"\xff\xff"
        return self.string(text)


LEGACY: Final = Encoding(flexible=False)
FLEXIBLE: Final = Encoding(flexible=True)


class _StringLengths(dict[int, bytes]):
    """Encoded lengths of strings, each made on first use. Raises as :meth:`Encoding.string`."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self._encoding = encoding

    def __missing__(self, size: int) -> bytes:
        encoded = self[size] = self._encoding.string_length(size)
        return encoded


def lengths_of_strings(encoding: Encoding) -> Callable[[int], bytes]:
    """:meth:`Encoding.string_length` for who encodes many strings."""
    return _StringLengths(encoding).__getitem__


def uuid_bytes(value: uuid.UUID | None) -> bytes:
    """16 bytes, all zero for None."""
    return bytes(16) if value is None else value.bytes


class Reader:
    """Reads the fields of a small answer or a request one after the other.

    Nothing is reserved for what an answer announces before it is there. Every method raises
    :class:`DecodeError` where the buffer ends early.

    Args:
        max_elements: How many elements all arrays may have together, as far as they are read by
            :meth:`nullable_array_length`, and tagged fields with them; None: as many as there are
            bytes for.
    """

    __slots__ = ("_data", "_elements_left", "_flexible", "_offset")

    def __init__(
        self, data: bytes, *, flexible: bool = False, max_elements: int | None = None
    ) -> None:
        self._data = data
        self._elements_left = len(data) if max_elements is None else max_elements
        self._flexible = flexible
        self._offset = 0

    def int8(self) -> int:
        return self._number(1)

    def int16(self) -> int:
        return self._number(2)

    def int32(self) -> int:
        return self._number(4)

    def int64(self) -> int:
        return self._number(8)

    def uint16(self) -> int:
        return self._number(2) & 0xFFFF

    def boolean(self) -> bool:
        return self._number(1) != 0

    def float64(self) -> float:
        value: float = _unpack_float64(self._take(8))[0]
        return value

    def uuid(self) -> uuid.UUID | None:
        """A topic id; None for zero, which stands for none."""
        raw = self._take(16)
        return uuid.UUID(bytes=raw) if any(raw) else None

    def int32_array(self, length: int) -> tuple[int, ...]:
        """That many numbers, whose count has been read already."""
        return struct.unpack(f">{length}i", self._take(4 * length))

    def nullable_array_length(self) -> int | None:
        """Number of elements; None for null."""
        length, self._offset = read_nullable_array_length(
            self._data, self._offset, flexible=self._flexible
        )
        self._count(length or 0)
        return length

    def _count(self, elements: int) -> None:
        self._elements_left -= elements
        if self._elements_left < 0:
            raise DecodeError(f"an array of {elements} elements: there are too many in all")

    def array_length(self) -> int:
        """Number of elements; null counts as empty."""
        length, self._offset = read_array_length(self._data, self._offset, flexible=self._flexible)
        return length

    def fixed_size_array(self, size: int) -> bytes:
        """The elements of an array, each of which takes ``size`` bytes; null counts as empty."""
        return self._take(self.array_length() * size)

    def string(self) -> str:
        text, self._offset = read_string(self._data, self._offset, flexible=self._flexible)
        return text

    def nullable_string(self) -> str | None:
        null = b"\x00" if self._flexible else b"\xff\xff"
        if self._data.startswith(null, self._offset):
            self._offset += len(null)
            return None
        return self.string()

    def sized_bytes(self) -> bytes:
        """Bytes of the legacy encoding; null counts as empty."""
        size = max(self.int32(), 0)
        return self._take(size)

    def nullable_bytes(self) -> bytes | None:
        if not self._flexible:
            size = self.int32()
            return None if size < 0 else self._take(size)
        size, self._offset = read_uvarint(self._data, self._offset)
        return None if size == 0 else self._take(size - 1)

    def tagged_fields(self) -> list[tuple[int, bytes]]:
        """Number and bytes of each tagged field, if this encoding has them."""
        if not self._flexible:
            return []
        count, self._offset = read_uvarint(self._data, self._offset)
        self._count(count)
        fields = []
        for _ in range(count):
            tag, self._offset = read_uvarint(self._data, self._offset)
            size, self._offset = read_uvarint(self._data, self._offset)
            fields.append((tag, self._take(size)))
        return fields

    def rest(self) -> bytes:
        """Everything that has not been read yet."""
        return self._take(len(self._data) - self._offset)

    def expect_end(self) -> None:
        """Raise DecodeError unless everything has been read."""
        rest = len(self._data) - self._offset
        if rest:
            raise DecodeError(f"{rest} bytes follow what was to be read")

    def tags(self) -> None:
        """Skip tagged fields, if this encoding has them."""
        if self._flexible:
            self._offset = skip_tags(self._data, self._offset)

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big", signed=True)

    def _take(self, size: int) -> bytes:
        end = self._offset + size
        if end > len(self._data):
            raise DecodeError("the buffer ends early")
        taken, self._offset = self._data[self._offset : end], end
        return taken
