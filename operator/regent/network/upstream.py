"""The connection to a broker that belongs to one client's connection."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from regent.model.errors import RegentError
from regent.network.connection import BrokerConnection
from regent.protocol.connection_setup import AuthenticationError
from regent.protocol.framing import RequestHeader
from regent.protocol.primitives import DecodeError
from regent.protocol.sasl import Authenticating
from regent.protocol.serving import Peer, UpstreamBroker

_PIECE: Final = 64 * 1024
"""Bytes of an answer that are passed on at a time."""

_HEAD: Final = struct.Struct(">ii")
"""Size of the frame, and correlation id."""

_MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""Largest answer of a broker that is passed on. Kafka's consumers ask for up to 50 MiB."""

_CHECKED_S: Final = 30.0
"""For so long a client that may be passed on may be."""

_MAX_MERGED_BYTES: Final = 8 * 1024 * 1024
"""Largest answer that is read as a whole, to be merged with ours."""

Write = Callable[[bytes], Awaitable[None]]
"""Sends bytes to the client, and returns when they have left the process."""


class UpstreamError(RegentError):
    """No broker answers a request: the client's connection is to be closed."""


class Upstreams(Protocol):
    """What all of them share: see :class:`~regent.network.pass_through.PassThrough`."""

    async def check_identity(self, peer: Peer, /) -> None: ...

    def is_current(self, broker: UpstreamBroker, header: RequestHeader, /) -> bool: ...

    async def open(
        self, upstream: Upstream, header: RequestHeader, /
    ) -> tuple[UpstreamBroker, BrokerConnection]: ...

    def admit(self, upstream: Upstream, /) -> None: ...

    def forget(self, upstream: Upstream, /) -> None: ...


class Upstream:
    """Passes requests of one client on, one at a time.

    A broker keeps nothing of a connection but who it is and its throttling. So one that is idle can
    be closed at any time, and the next request goes to another broker.

    Args:
        shared: What all of them share.
        peer: The client.
        proved: With what it has authenticated by SASL.
        group: Stands for its address.

    Attributes:
        broker: The broker that it is connected to; None: to none.
        is_busy: Whether a request is in progress.
        last_active: When the last one ended, by the loop's clock.
    """

    def __init__(
        self, shared: Upstreams, peer: Peer, proved: Authenticating | None, *, group: str
    ) -> None:
        self.peer = peer
        self.proved = proved
        self.group = group
        self.broker: UpstreamBroker | None = None
        self.is_busy = False
        self.last_active = 0.0
        self._shared = shared
        self._connection: BrokerConnection | None = None
        self._is_admitted = False
        self._checked_at = float("-inf")

    @property
    def is_lost(self) -> bool:
        """Whether the broker is known to have closed the connection."""
        return self._connection is not None and self._connection.is_lost

    async def relay(self, header: RequestHeader, frame: bytes, write: Write) -> None:
        """Pass a request on, and its answer back, piece by piece.

        Args:
            write: Whatever it raises ends this.

        Raises:
            UpstreamError: If a broker cannot be reached, or breaks off. A part of the answer may
                have been written.
            NotPassedOnError: If requests of this client are not passed on.
        """
        async with _Exchange(self, header) as connection:
            await connection.send_frame(frame)
            size = await self._answer_size(connection, header, largest=_MAX_ANSWER_BYTES)
            left = size - 4
            piece = _HEAD.pack(size, header.correlation_id)
            while left:
                data = await connection.receive(min(left, _PIECE - len(piece)))
                left -= len(data)
                await write(piece + data)
                piece = b""
            if piece:
                await write(piece)

    async def ask(self, header: RequestHeader, frame: bytes) -> bytes:
        """Pass a request on; the frame of the answer, without its length.

        Raises:
            UpstreamError: As :meth:`relay`; also if the answer is large.
            NotPassedOnError: As :meth:`relay`.
        """
        async with _Exchange(self, header) as connection:
            await connection.send_frame(frame)
            size = await self._answer_size(connection, header, largest=_MAX_MERGED_BYTES)
            body = await connection.receive_exactly(size - 4)
        return _HEAD.pack(size, header.correlation_id)[4:] + body

    def close(self) -> None:
        """Close the connection to the broker, if there is one; a request in progress fails."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.broker = None
        self._is_admitted = False
        self._shared.forget(self)

    async def connect(self, header: RequestHeader) -> BrokerConnection:
        """The open connection if it fits a request, else a new one."""
        now = asyncio.get_running_loop().time()
        if now - self._checked_at >= _CHECKED_S:
            await self._shared.check_identity(self.peer)
            self._checked_at = now
        connection, broker = self._connection, self.broker
        if (
            connection is not None
            and broker is not None
            and not self.is_lost
            and self._shared.is_current(broker, header)
            and await _is_renewed(connection)
        ):
            return connection
        self.close()
        self._shared.admit(self)
        self._is_admitted = True
        broker, connection = await self._shared.open(self, header)
        if not self._is_admitted:
            connection.close()
            raise UpstreamError("closed for another client: there are too many connections")
        self.broker, self._connection = broker, connection
        return connection

    async def _answer_size(
        self, connection: BrokerConnection, header: RequestHeader, *, largest: int
    ) -> int:
        size, correlation_id = _HEAD.unpack(await connection.receive_exactly(_HEAD.size))
        if correlation_id != header.correlation_id or not 4 <= size <= largest:
            raise UpstreamError(
                f"an answer of {size} bytes to request {correlation_id}; of up to {largest} to "
                f"{header.correlation_id} was expected"
            )
        return int(size)


class _Exchange:
    """A request in progress: the connection is closed unless it ends well."""

    def __init__(self, upstream: Upstream, header: RequestHeader) -> None:
        self._upstream = upstream
        self._header = header

    async def __aenter__(self) -> BrokerConnection:
        upstream = self._upstream
        upstream.is_busy = True
        try:
            return await upstream.connect(self._header)
        except BaseException:
            upstream.is_busy = False
            upstream.close()
            raise

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> None:
        upstream = self._upstream
        upstream.is_busy = False
        upstream.last_active = asyncio.get_running_loop().time()
        if error is not None:
            broker = upstream.broker
            upstream.close()
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                name = "a broker" if broker is None else f"broker {broker.broker.broker_id}"
                raise UpstreamError(f"{name} has broken off: {error}") from error


async def _is_renewed(connection: BrokerConnection) -> bool:
    """Whether the broker takes requests on it for some time yet."""
    try:
        await connection.renew_session()
    except (OSError, AuthenticationError, DecodeError):
        return False
    return True
