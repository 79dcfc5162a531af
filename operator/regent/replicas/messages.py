"""What replicas say to each other: one JSON object a line, ended by a newline.

Whoever connects asks, over and over. Whoever was connected to answers each, and says without being
asked that the other one is to take over, and that it leaves. Members that are not known are
ignored, so that replicas of different versions understand each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import msgspec

LINE_BYTES: Final = 1_024
"""The longest line."""

T = TypeVar("T")

_Instance = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class MalformedMessageError(Exception):
    """A line that no replica of Regent sends."""


class Ask(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the other one lives.

    Attributes:
        instance: Who asks.
        is_ready: Whether who asks can take over at once.
    """

    instance: _Instance
    is_ready: bool = False


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """The other one lives.

    Attributes:
        instance: Who answers.
        take_over: Whether who has asked is to take over: who answers leads, and leaves.
        leaves: Whether who answers ends now, as it should.
    """

    instance: _Instance
    take_over: bool = False
    leaves: bool = False


def encode(message: Ask | Answer) -> bytes:
    """The line of a message."""
    return msgspec.json.encode(message) + b"\n"


def _decoder(of: type[T]) -> Callable[[bytes], T]:
    decode: Callable[[Any], T] = msgspec.json.Decoder(of).decode

    def decode_line(line: bytes) -> T:
        try:
            return decode(line)
        except (ValueError, RecursionError) as error:
            raise MalformedMessageError(f"not a message of a replica: {error}") from error

    return decode_line


decode_ask = _decoder(Ask)
"""Raises MalformedMessageError for anything else."""

decode_answer = _decoder(Answer)
"""Likewise."""
