"""What the znode codecs share: bounds, and one way to turn every decoding failure into one error.

A broker, a tool or a hand may have written the bytes. Whatever they are, a codec either returns a
value or raises ``MalformedZNodeError`` with the path and the reason, never anything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Final, TypeVar

import msgspec

from regent.model.errors import MalformedZNodeError

T = TypeVar("T")

INT32_MAX: Final = 2**31 - 1

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=INT32_MAX)]
NonNegativeInt32 = Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)]

EPOCH_MAX: Final = INT32_MAX - 1_000_000
"""No elections have led above that. What is left is more than a term raises an epoch by: each of
these has to fit into a request, too, and one that does not would end the term."""

Epoch = Annotated[int, msgspec.Meta(ge=0, le=EPOCH_MAX)]
BrokerId = NonNegativeInt32
PartitionId = NonNegativeInt32

_first_value_decoder: Final = json.JSONDecoder()

DECODING_ERRORS: Final = (ValueError, RecursionError)
"""What msgspec raises for bytes that do not decode: its own errors and ``UnicodeDecodeError`` (both
are ``ValueError``), and ``RecursionError`` for absurd nesting."""


def json_decoder(of: type[T]) -> Callable[[str, bytes], T]:
    """A function ``(path, data) -> value`` that decodes JSON into ``of`` and checks its types.

    Kafka's decoder takes the first value of a node and ignores what is behind it, such as the NUL
    that programs in C add. So must we: a partition whose state only brokers can read has no leader.
    """
    decode = msgspec.json.Decoder(of).decode

    def decode_znode(path: str, data: bytes) -> T:
        try:
            return decode(data)
        except DECODING_ERRORS as error:
            try:
                return decode(_first_value(data))
            except DECODING_ERRORS:
                raise MalformedZNodeError(path, reason_of(error)) from error

    return decode_znode


def _first_value(data: bytes) -> bytes:
    """The JSON value at the beginning of a node that has something else behind it.

    Raises:
        ValueError: There is none.
        RecursionError: It is nested absurdly.
    """
    text = data.decode(errors="surrogateescape").lstrip(" \t\r\n")
    _value, end = _first_value_decoder.raw_decode(text)
    return text[:end].encode(errors="surrogateescape")


def reason_of(error: Exception) -> str:
    """The error as one line for a person."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def json_object(members: Iterable[tuple[str, object]]) -> bytes:
    """JSON object with its members in the given order."""
    return msgspec.json.encode(dict(members))


def decimal(path: str, text: str, *, of: str) -> int:
    """A decimal number as Java's ``toInt`` and ``toLong`` accept it: ASCII digits with a sign.

    Args:
        path: The znode, for the error.
        text: The number.
        of: What the number is, for the error.

    Raises:
        MalformedZNodeError: If the text is anything else or exceeds 64 bits.
    """
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise MalformedZNodeError(path, f"{of} is not a decimal number: {text[:40]!r}")
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise MalformedZNodeError(path, f"{of} is out of range: {text}")
    return number
