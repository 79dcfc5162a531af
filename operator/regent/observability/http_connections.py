"""Bounds for the connections of an HTTP server: how many, and for how long.

aiohttp serves any number of clients for any time. This stands between its protocol and the
sockets, so that clients which are silent, slow or many cannot keep others from being answered.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from regent.model.peer_address import address_group, plain_address
from regent.sockets.kept_errors import freed_if_tls_fails


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one client, and all of them together, may take.

    Attributes:
        connections: Open connections. One more closes one of the address that has most: the oldest
            that has sent no request yet, or else the oldest. So a new client always gets its turn,
            and one that floods does not take that of others.
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

    Args:
        factory: Makes the HTTP server's protocols.
        limits: What is enforced here: connections, and the two times.
        tls: Connections begin with TLS. It is begun here, as a connection counts before that, too.
    """

    def __init__(
        self,
        factory: Callable[[], asyncio.Protocol],
        limits: HttpLimits,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._factory = factory
        self._limits = limits
        self._tls = tls
        self._open: dict[_Connection, None] = {}
        self._is_closed = False

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self._factory(), self, self._tls)

    def __len__(self) -> int:
        return len(self._open)

    def request_received(self, transport: asyncio.BaseTransport | None) -> None:
        """A complete request has come: from here on only the total time counts."""
        connection = None if transport is None else transport.get_protocol()
        if isinstance(connection, _Connection):
            connection.has_request = True

    def close(self) -> None:
        """Close every connection at once, whatever is still to be sent, and those to come."""
        self._is_closed = True
        for connection in list(self._open):
            connection.abort()

    def opened(self, connection: _Connection) -> None:
        """Take a connection in; make room for it if there is none."""
        if self._is_closed:
            connection.abort()
            return
        if len(self._open) >= self._limits.connections:
            victim = self._victim()
            self.closed(victim)
            victim.abort()
        self._open[connection] = None
        loop = asyncio.get_running_loop()
        connection.timers = (
            loop.call_later(self._limits.request_s, connection.abort_without_request),
            loop.call_later(self._limits.total_s, connection.abort),
        )

    def _victim(self) -> _Connection:
        counts = Counter(each.group for each in self._open)
        (most, _), *_ = counts.most_common(1)
        of_most = [each for each in self._open if each.group == most]
        return next((each for each in of_most if not each.has_request), of_most[0])

    def closed(self, connection: _Connection) -> None:
        """Forget a connection."""
        if connection in self._open:
            del self._open[connection]
            connection.cancel_timers()


class _Connection(asyncio.Protocol):
    """Passes everything on to the HTTP server's protocol, once TLS is there."""

    def __init__(
        self, inner: asyncio.Protocol, limiter: ConnectionLimiter, tls: ssl.SSLContext | None
    ) -> None:
        self._inner = inner
        self._limiter = limiter
        self._tls = tls
        self._transport: asyncio.Transport | None = None
        self._starting_tls: asyncio.Task[None] | None = None
        self._is_served = False
        self._early: list[bytes] = []
        self.has_request = False
        self.group = ""
        self.timers: tuple[asyncio.TimerHandle, ...] = ()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def abort_without_request(self) -> None:
        if not self.has_request:
            self.abort()

    def cancel_timers(self) -> None:
        for timer in self.timers:
            timer.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("",)
        self.group = address_group(plain_address(str(peer[0])))
        self._limiter.opened(self)
        if self._tls is None:
            self._serve(transport)
            return
        self._transport.pause_reading()
        self._starting_tls = asyncio.get_running_loop().create_task(
            self._start_tls(self._transport, self._tls)
        )

    async def _start_tls(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        if transport.is_closing():  # already: asyncio would wait for its end until a time-out
            return
        loop = asyncio.get_running_loop()
        try:
            # No time-out of its own: there is one for all that comes before a request.
            with freed_if_tls_fails():
                secured = await loop.start_tls(transport, self, tls, server_side=True)
        except OSError:  # ssl.SSLError included: not our certificate, no TLS, or nobody any more
            secured = None
        if secured is None or secured.is_closing():
            transport.abort()
            self._limiter.closed(self)  # one that is lost before TLS is there is not reported
            return
        self._serve(secured)

    def _serve(self, transport: asyncio.BaseTransport) -> None:
        self._is_served = True
        self._inner.connection_made(transport)
        for data in self._early:
            self._inner.data_received(data)
        self._early.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.closed(self)
        if self._is_served:
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_served:
            self._inner.data_received(data)
        else:  # with the end of the handshake
            self._early.append(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._is_served else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
