"""Frames of Kafka's protocol: bytes in, whole messages out. No sockets.

A message travels as its length, a header and a body. Headers come in two versions each: with tagged
fields where the API's version is flexible, without them elsewhere; the answer to ApiVersions is
always the old one, so that it can be read before anything is agreed upon (KIP-511).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from regent.protocol.primitives import LEGACY, NO_TAGS, DecodeError, skip_tags, unpack_int32

MAX_FRAME_SIZE: Final = 100 * 1024 * 1024
"""Largest frame accepted, in bytes: Kafka's default for socket.request.max.bytes."""

API_VERSIONS_KEY: Final = 18

_pack_request_head: Final = struct.Struct(">ihhi").pack
_unpack_request_head: Final = struct.Struct(">hhi").unpack_from


class FrameError(DecodeError):
    """A frame that cannot be one: the connection is to be closed."""


class CorrelationError(DecodeError):
    """A response that answers another request than the one in flight."""


class FrameReader:
    """Cuts a stream of bytes into frames.

    Args:
        max_frame_size: Largest acceptable frame in bytes. A peer that announces more, or a negative
            size, is not speaking this protocol.

    Attributes:
        max_frame_size: The same; can be changed for further frames.
    """

    def __init__(self, *, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        self.max_frame_size = max_frame_size
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of an unfinished frame that wait for the rest."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes from the peer; the frames that are complete now, without their lengths.

        Raises:
            FrameError: If a frame announces an impossible size. The reader is unusable then.
        """
        buffer = self._buffer
        buffer += data
        frames: list[bytes] = []
        offset = 0
        while len(buffer) - offset >= 4:
            (size,) = unpack_int32(buffer, offset)
            if not 0 <= size <= self.max_frame_size:
                raise FrameError(
                    f"a frame of {size} bytes; the largest accepted has {self.max_frame_size}"
                )
            end = offset + 4 + size
            if end > len(buffer):
                break
            frames.append(bytes(buffer[offset + 4 : end]))
            offset = end
        del buffer[:offset]
        return frames


class RequestHeader(NamedTuple):
    """What a request says of itself."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def request_header(frame: bytes) -> RequestHeader:
    """Beginning of a request's header; the client id is not read: it is None.

    Raises:
        DecodeError: If the frame is too short for it.
    """
    if len(frame) < 8:
        raise DecodeError("a request is too short for its header")
    api_key, api_version, correlation_id = _unpack_request_head(frame)
    return RequestHeader(api_key, api_version, correlation_id, None)


class Pieces(Protocol):
    """Bytes that are made while they are sent."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """The bytes, anew each time."""
        ...


Part = bytes | Pieces
"""Of a message that is sent in parts, one after the other."""


def joined(parts: Iterable[Part]) -> bytes:
    """All of a message at once."""
    return b"".join(pieces_of(parts))


def pieces_of(parts: Iterable[Part]) -> Iterator[bytes]:
    """All of a message, made as far as it is asked for."""
    for part in parts:
        if isinstance(part, bytes):
            yield part
        else:
            yield from part


def encode_request(header: RequestHeader, body: Sequence[Part], *, flexible: bool) -> list[Part]:
    """A whole request, length included."""
    client_id = LEGACY.nullable_string(header.client_id)
    tags = NO_TAGS if flexible else b""
    size = 8 + len(client_id) + len(tags) + sum(map(len, body))
    head = _pack_request_head(size, header.api_key, header.api_version, header.correlation_id)
    return [head + client_id + tags, *body]


def decode_response(frame: bytes, *, correlation_id: int, api_key: int, flexible: bool) -> bytes:
    """Body of the response to the request with that correlation id.

    Raises:
        CorrelationError: If the response belongs to another request.
        DecodeError: If the frame is too short for a header.
    """
    if len(frame) < 4:
        raise DecodeError("a response is too short for its header")
    (found,) = unpack_int32(frame)
    if found != correlation_id:
        raise CorrelationError(f"a response to request {found}; {correlation_id} is in flight")
    if flexible and api_key != API_VERSIONS_KEY:
        return frame[skip_tags(frame, 4) :]
    return frame[4:]
