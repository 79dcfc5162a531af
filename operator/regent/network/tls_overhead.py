"""How much a client may send by TLS beside what its requests are.

TLS knows messages that carry no data. One that asks for other keys takes 27 bytes and costs more
time than a small request, and its answer waits in memory until the client takes it. OpenSSL takes
any number of them, and asyncio reports only data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from regent.network.tls_buffers import READ_BYTES

_UNFINISHED_BYTES: Final = READ_BYTES + 4 * 1024
"""Of a record that is not whole yet, and of messages that clients send beside data."""

_REQUEST_BYTES: Final = 256
"""Records of a small request are larger than the request."""

_FACTOR: Final = 2
"""A large request is in large records."""

_AT_ONCE_BYTES: Final = 1024
"""Of who has sent few requests no more is decrypted before others have their turn."""

_AT_ONCE_SHARE: Final = 16
"""Else so large a part of what may come."""


class MeasuredTls(asyncio.BufferedProtocol):
    """Between a socket and asyncio's TLS: compares what comes with what is in it.

    Args:
        tls: asyncio's protocol for the connection.
        is_reading: Whether asyncio decrypts what comes.
        exceeded: Is called when a client has sent far more than its requests.
    """

    def __init__(
        self,
        tls: asyncio.BufferedProtocol,
        *,
        is_reading: Callable[[], bool],
        exceeded: Callable[[], None],
    ) -> None:
        self._tls = tls
        self._is_reading = is_reading
        self._exceeded = exceeded
        self._left = _UNFINISHED_BYTES

    def requests_came(self, size: int, requests: int) -> None:
        """So many bytes of requests, and the ends of so many of them, were decrypted."""
        self._left += size * _FACTOR + requests * _REQUEST_BYTES

    def get_buffer(self, sizehint: int) -> memoryview:
        size = max(self._left // _AT_ONCE_SHARE, _AT_ONCE_BYTES)
        return memoryview(self._tls.get_buffer(sizehint))[:size]

    def buffer_updated(self, nbytes: int) -> None:
        self._tls.buffer_updated(nbytes)
        self._left -= nbytes
        if self._left < 0 and self._is_reading():
            self._exceeded()

    def connection_lost(self, exc: Exception | None) -> None:
        self._tls.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._tls.eof_received()

    def pause_writing(self) -> None:
        self._tls.pause_writing()

    def resume_writing(self) -> None:
        self._tls.resume_writing()
