"""One connection to a broker: opened, authenticated, one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from regent.model.cluster import EndPoint
from regent.network.api_versions import ask_versions
from regent.network.settings import ChannelSettings
from regent.network.watched_socket import WatchedSocket, open_tls
from regent.protocol.connection_setup import (
    SetupRequest,
    check_sasl_handshake_response,
    decode_sasl_authenticate_response,
    sasl_authenticate_request,
    sasl_authenticate_version,
    sasl_handshake_request,
)
from regent.protocol.framing import (
    CorrelationError,
    FrameError,
    FrameReader,
    Part,
    RequestHeader,
    decode_response,
    encode_request,
    joined,
    pieces_of,
)
from regent.protocol.primitives import DecodeError, pack_int32
from regent.protocol.sasl import Authenticating

_SLICE: Final = 256 * 1024
"""Bytes handed to the transport at a time. It copies what the socket does not take at once, so a
large request would otherwise exist once more per receiver."""

_READ_SIZE: Final = 1024 * 1024

_AT_ONCE: Final = 16 * 1024
"""Bytes that a socket without anything under way takes at once."""

_SESSION_USED: Final = 0.85
"""The part of a SASL session after which the next request renews it. Kafka's clients renew theirs
after 85 to 95 % of it."""

_END: Final = 16
"""Bytes of a large request that are kept back until all others have left."""


class ConnectionLostError(ConnectionError):
    """The broker closed the connection in the middle of a request."""


class SendingStoppedError(ConnectionError):
    """In the middle of a request it turned out that it must not be sent."""


class BrokerConnection:
    """A connection on which requests are sent one at a time.

    Any error leaves the connection unusable: close it. Use :meth:`open`.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        endpoint: EndPoint,
        client_id: str,
        socket_below: WatchedSocket | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._reader = reader
        self._writer = writer
        self._socket_below = socket_below  # below TLS
        self._client_id = client_id
        self._frames = FrameReader()
        self._correlation_id = 0
        self._has_answered = False
        self._credentials: Authenticating | None = None
        self._authenticate_version = 0
        self._renew_at = math.inf

    @classmethod
    async def open(
        cls,
        endpoint: EndPoint,
        *,
        client_id: str,
        settings: ChannelSettings,
        read_ahead: int = _READ_SIZE,
    ) -> BrokerConnection:
        """Connect and authenticate as the endpoint's security protocol asks for.

        Args:
            read_ahead: Twice so many bytes, and what the socket gives at once, may wait to be read.

        Raises:
            OSError: If there is no connection, or can be none to such an address; TLS errors are
                among these.
            TimeoutError: If it took longer than ``settings.connect_timeout``.
            AuthenticationError: If the broker refuses the credentials.
            DecodeError: If it answers nonsense.
        """
        protocol = endpoint.security_protocol
        tls = settings.tls if protocol.endswith("SSL") else None
        async with asyncio.timeout(settings.connect_timeout):
            try:
                host, port, socket_below = endpoint.host, endpoint.port, None
                if tls is None:
                    reader, writer = await asyncio.open_connection(host, port, limit=read_ahead)
                else:
                    reader, writer, socket_below = await open_tls(
                        host, port, tls.context(), limit=read_ahead
                    )
            except ssl.SSLError:  # a certificate that is not accepted is a ValueError, too
                raise
            except (ValueError, OverflowError) as error:  # no host for TLS, no IDN, no port
                raise OSError(f"{endpoint.host}:{endpoint.port} is no address: {error}") from error
            connection = cls(
                reader, writer, endpoint=endpoint, client_id=client_id, socket_below=socket_below
            )
            try:
                if protocol.startswith("SASL") and settings.sasl is not None:
                    await connection._begin_session(settings.sasl)
            except BaseException:
                connection.close()
                raise
        return connection

    @property
    def is_lost(self) -> bool:
        """Whether the broker is known to have closed the connection, as it does with idle ones."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def wait_lost(self) -> None:
        """Wait until the broker closes the connection, or sends what nobody has asked for. Nothing
        else uses the connection meanwhile; it may be used once this was cancelled."""
        with contextlib.suppress(OSError):  # which says the same
            await self._reader.read(1)
        self.close()

    async def round_trip(
        self,
        api_key: int,
        api_version: int,
        body: Sequence[Part],
        *,
        flexible: bool,
        may_go_on: Callable[[], bool] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> bytes:
        """Send a request and wait for the body of its answer. Renews the session when it is time.

        Args:
            api_key: Which request.
            api_version: Its version.
            body: In parts.
            flexible: Whether its header has tagged fields.
            may_go_on: For requests that only a controller may send: asked right before the bytes
                leave, and of a large request right before its end does. If the answer is no, the
                broker does not get the whole request.
            on_sent: Called when the end was written, ahead of the wait for the answer.

        Raises:
            OSError: If the connection breaks; :class:`SendingStoppedError` is among these.
            AuthenticationError: If the broker does not accept the credentials any more.
            DecodeError: If what comes back is not a response to this request.
        """
        await self.renew_session()
        return await self._round_trip(
            api_key, api_version, body, flexible=flexible, may_go_on=may_go_on, on_sent=on_sent
        )

    async def renew_session(self) -> None:
        """Authenticate again if the session is about to end, or has: a broker closes a connection
        on which it gets another request after that (``connections.max.reauth.ms``, KIP-368).

        Raises:
            OSError: If the connection breaks.
            AuthenticationError: If the broker does not accept the credentials any more.
            DecodeError: If it answers nonsense.
        """
        if self._credentials is not None and _now() >= self._renew_at:
            await self._authenticate(self._credentials)

    async def _round_trip(
        self,
        api_key: int,
        api_version: int,
        body: Sequence[Part],
        *,
        flexible: bool,
        may_go_on: Callable[[], bool] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> bytes:
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(api_key, api_version, correlation_id, self._client_id)
        parts = encode_request(header, body, flexible=flexible)
        if may_go_on is None:
            for piece in pieces_of(parts):
                await self._write(piece)
        elif sum(map(len, parts)) <= _AT_ONCE:
            whole = joined(parts)
            _require(may_go_on)
            await self._write(whole)
        else:
            await self._write_while(parts, may_go_on)
        if on_sent is not None:
            on_sent()
        frame = await self._read_frame()
        return decode_response(
            frame, correlation_id=correlation_id, api_key=api_key, flexible=flexible
        )

    async def set_up(self, request: SetupRequest) -> bytes:
        """:meth:`round_trip` for one of the requests that open a connection."""
        await self.renew_session()
        return await self._set_up(request)

    async def _set_up(self, request: SetupRequest) -> bytes:
        return await self._round_trip(
            request.api_key, request.api_version, (request.body,), flexible=request.flexible
        )

    async def send_frame(self, frame: bytes) -> None:
        """Send the frame of a request as it is.

        Raises:
            OSError: If the connection breaks.
        """
        self._writer.write(pack_int32(len(frame)))
        await self._write(frame)

    async def receive(self, at_most: int) -> bytes:
        """Some bytes of an answer, at least one.

        Raises:
            OSError: If the connection breaks.
        """
        data = await self._reader.read(at_most)
        if not data:
            raise ConnectionLostError("the broker closed the connection")
        return data

    async def receive_exactly(self, size: int) -> bytes:
        """So many bytes of an answer.

        Raises:
            OSError: If the connection breaks.
        """
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            raise ConnectionLostError("the broker closed the connection") from error

    def close(self) -> None:
        """Close at once; what has not been sent yet is dropped."""
        self._writer.transport.abort()

    async def _begin_session(self, credentials: Authenticating) -> None:
        self._authenticate_version = sasl_authenticate_version(await ask_versions(self))
        await self._authenticate(credentials)
        self._credentials = credentials

    async def _authenticate(self, credentials: Authenticating) -> None:
        check_sasl_handshake_response(
            await self._set_up(sasl_handshake_request(credentials.mechanism))
        )
        dialogue = credentials.dialogue(secrets.token_urlsafe(24))
        message = next(dialogue)
        while True:
            version, asked_at = self._authenticate_version, _now()
            answer = decode_sasl_authenticate_response(
                await self._set_up(sasl_authenticate_request(message, version=version)),
                version=version,
            )
            try:
                message = dialogue.send(answer.message)
            except StopIteration:
                lifetime_s = answer.session_lifetime_s
                self._renew_at = (
                    asked_at + lifetime_s * _SESSION_USED if lifetime_s > 0 else math.inf
                )
                return

    async def _write(self, part: bytes) -> None:
        view = memoryview(part)
        for start in range(0, len(view), _SLICE):
            self._writer.write(view[start : start + _SLICE])
            await self._writer.drain()

    async def _write_while(self, parts: Sequence[Part], may_go_on: Callable[[], bool]) -> None:
        """Write a large request whose end leaves only if it still may.

        A broker does nothing about a request before it has the last byte. What the transport keeps
        is written by the loop later: by one that has just woken up, before anybody can be asked. So
        the transport is empty when the question is asked before the end, and with TLS the one below
        it, too: the socket then takes the end at once. Others have the loop in between, as pieces
        may be made here, but not ahead of the end: what they are about to make themselves may take
        long, and the broker waits.
        """
        # drain() waits until it is empty. (With TLS 0 is taken for "always full".)
        is_tls = self._socket_below is not None
        self._writer.transport.set_write_buffer_limits(high=1 if is_tls else 0)
        left = sum(map(len, parts)) - _END
        end = bytearray()
        since = 0  # bytes since others had the loop
        for piece in pieces_of(parts):
            view = memoryview(piece)
            for start in range(0, min(left, len(view)), _SLICE):
                if since > _AT_ONCE:
                    await asyncio.sleep(0)
                    since = 0
                some = view[start : min(start + _SLICE, left, len(view))]
                since += len(some)
                _require(may_go_on)
                self._writer.write(some)
                await self._writer.drain()
            end += view[left:]
            left = max(0, left - len(view))
        await self._until_all_has_left()
        _require(may_go_on)
        await self._write(bytes(end))

    async def _until_all_has_left(self) -> None:
        below = self._socket_below
        while below is not None and not below.is_empty:
            await below.wait_empty()
            await self._writer.drain()  # also raises the error if the connection was lost

    async def _read_frame(self) -> bytes:
        while True:
            data = await self._reader.read(_READ_SIZE)
            if not data:
                raise ConnectionLostError("the broker closed the connection")
            try:
                frames = self._frames.feed(data)
            except FrameError as error:
                if self._has_answered:  # in frames: Kafka is spoken there
                    raise DecodeError(str(error)) from error
                raise
            if not frames:
                continue
            if len(frames) > 1 or self._frames.pending:
                raise CorrelationError("the broker sent more than the one response asked for")
            self._has_answered = True
            return frames[0]


def _require(may_go_on: Callable[[], bool]) -> None:
    if not may_go_on():
        raise SendingStoppedError("this process may not be the controller any more")


def _now() -> float:
    return asyncio.get_running_loop().time()
