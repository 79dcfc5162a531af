"""What has arrived over a ZooKeeper connection and is not processed yet.

kazoo reads each message with two ``select`` and two ``recv``. A storm of watch events is thousands
of short messages: here one ``recv`` brings hundreds of them.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

RECEIVE_SIZE: Final = 65_536

_LENGTH: Final = struct.Struct(">i")
_EVENT: Final = struct.Struct(">iiqiiii")
"""Length of the message; xid, zxid and error of its header; type and state of the event, length of
its path."""
_EVENT_BODY: Final = struct.Struct(">iii")
"""The last three of these."""
_WATCH_XID: Final = -1
_SYNC_CONNECTED: Final = 3
"""State of every event that a server sends."""


class Event(NamedTuple):
    """A watch event as it is on the wire; ``path`` has the chroot."""

    type: int
    path: str

    def as_body(self) -> bytes:
        """The body of its message."""
        encoded = self.path.encode()
        return _EVENT_BODY.pack(self.type, _SYNC_CONNECTED, len(encoded)) + encoded


def decode_event(message: bytes, offset: int) -> Event:
    """The event that begins at an offset, after the header of its message."""
    kind, _, size = _EVENT_BODY.unpack_from(message, offset)
    start = offset + _EVENT_BODY.size
    return Event(kind, message[start : start + size].decode())


class ReceiveBuffer:
    """Belongs to kazoo's connection thread.

    Attributes:
        source: The socket from which the content came.
    """

    __slots__ = ("_at", "_received", "source")

    def __init__(self) -> None:
        self.source: socket.socket | None = None
        self._received = b""
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._received)

    def read(self, source: socket.socket, length: int, receive: Callable[[int], bytes]) -> bytes:
        """Exactly ``length`` bytes.

        Args:
            source: The socket of the present connection. What has come from another one is dropped.
            receive: Waits for data from ``source``: one byte at least, so many at most.
        """
        if source is not self.source:
            self.source, self._received, self._at = source, b"", 0
        start, end = self._at, self._at + length
        if end <= len(self._received):
            self._at = end
            return self._received[start:end]
        parts = [self._received[start:]]
        missing = end - len(self._received)
        self._received, self._at = b"", 0  # nothing is here, for who waits for the rest
        while missing > 0:
            chunk = receive(max(missing, RECEIVE_SIZE))
            parts.append(chunk[:missing])
            self._received, self._at = chunk, min(missing, len(chunk))
            missing -= len(chunk)
        return b"".join(parts)

    def take_event(self) -> Event | None:
        """The next message, if all of it is here and it is a watch event."""
        received, at = self._received, self._at
        if len(received) - at < _EVENT.size:
            return None
        length, xid, _, _, kind, _, size = _EVENT.unpack_from(received, at)
        end = at + _LENGTH.size + length
        if xid != _WATCH_XID or end > len(received):
            return None
        self._at = end
        start = at + _EVENT.size
        return Event(kind, received[start : start + size].decode())
