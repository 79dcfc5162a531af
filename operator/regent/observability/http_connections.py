"""Bounds for the connections of an HTTP server: how many, and for how long.

aiohttp serves any number of clients for any time. This stands between its protocol and the
sockets, so that clients which are silent, slow or many cannot keep others from being answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one client, and all of them together, may take.

    Attributes:
        connections: Open connections. One more closes the oldest that has sent no request yet, or
            else the oldest: a new client always gets its turn.
        line_bytes: Length of the request line, and of each header.
        headers: Number of headers.
        request_s: Time from the connection to the end of the request's headers, in seconds.
        total_s: Time from the connection until the answer is taken, in seconds.
        scrapes: Requests for ``/metrics`` at the same time; further ones are refused with 503.
        queries: The same for ``/why``.
        query_s: Time after which ``/why`` is given up with 503, in seconds.
    """

    connections: int = 64
    line_bytes: int = 8190
    headers: int = 64
    request_s: float = 5.0
    total_s: float = 30.0
    scrapes: int = 4
    queries: int = 4
    query_s: float = 5.0


class ConnectionLimiter:
    """Protocol factory for ``loop.create_server``: wraps that of the HTTP server.

    Belongs to one event loop.
    """

    def __init__(self, factory: Callable[[], asyncio.Protocol], limits: HttpLimits) -> None:
        self._factory = factory
        self._limits = limits
        self._open: dict[asyncio.BaseTransport, _Connection] = {}

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self._factory(), self)

    def __len__(self) -> int:
        return len(self._open)

    def request_received(self, transport: asyncio.BaseTransport | None) -> None:
        """A complete request has come: from here on only the total time counts."""
        connection = None if transport is None else self._open.get(transport)
        if connection is not None:
            connection.has_request = True

    def abort_all(self) -> None:
        """Close every connection at once, whatever is still to be sent."""
        for transport in list(self._open):
            cast(asyncio.Transport, transport).abort()

    def opened(self, transport: asyncio.Transport, connection: _Connection) -> None:
        """Take a connection in; make room for it if there is none."""
        if len(self._open) >= self._limits.connections:
            silent = (t for t, other in self._open.items() if not other.has_request)
            victim = next(silent, None) or next(iter(self._open))
            self._open.pop(victim).cancel_timers()
            cast(asyncio.Transport, victim).abort()
        self._open[transport] = connection
        loop = asyncio.get_running_loop()
        connection.timers = (
            loop.call_later(self._limits.request_s, connection.abort_without_request),
            loop.call_later(self._limits.total_s, transport.abort),
        )

    def closed(self, transport: asyncio.BaseTransport) -> None:
        """Forget a connection."""
        connection = self._open.pop(transport, None)
        if connection is not None:
            connection.cancel_timers()


class _Connection(asyncio.Protocol):
    """Passes everything on to the HTTP server's protocol."""

    def __init__(self, inner: asyncio.Protocol, limiter: ConnectionLimiter) -> None:
        self._inner = inner
        self._limiter = limiter
        self._transport: asyncio.Transport | None = None
        self.has_request = False
        self.timers: tuple[asyncio.TimerHandle, ...] = ()

    def abort_without_request(self) -> None:
        if not self.has_request and self._transport is not None:
            self._transport.abort()

    def cancel_timers(self) -> None:
        for timer in self.timers:
            timer.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._limiter.opened(self._transport, self)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._limiter.closed(self._transport)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
