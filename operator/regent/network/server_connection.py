"""One connection of a client: TLS, SASL, then its requests, one at a time and in their order."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeVar, cast

import msgspec

from regent.model.errors import RegentError
from regent.model.peer_address import address_group, plain_address
from regent.network.certificate_subject import subject_of
from regent.network.pass_through import NotPassedOnError
from regent.network.processor_time import metered
from regent.network.server_parts import ServerParts
from regent.network.server_statistics import CloseReason
from regent.network.tls_buffers import READ_BYTES
from regent.network.tls_overhead import MeasuredTls
from regent.network.tls_remedies import remedy_for_client
from regent.network.upstream import Upstream, UpstreamError
from regent.protocol.api_versions_answer import unsupported_answer
from regent.protocol.framing import FrameError, FrameReader, RequestHeader, request_header
from regent.protocol.passed_on import has_no_answer
from regent.protocol.primitives import DecodeError
from regent.protocol.sasl import Authenticating
from regent.protocol.sasl_server_authenticator import SaslServerAuthenticator, refuse_sasl
from regent.protocol.served_apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from regent.protocol.server_codec import Request, UnsupportedRequestError, is_large
from regent.protocol.serving import (
    ANONYMOUS,
    Close,
    PassOn,
    Peer,
    Refusal,
    Throttled,
    user_principal,
)
from regent.sockets.kept_errors import clear_frames, freed_if_tls_fails

T = TypeVar("T")

_CONVERTED_IN_THREAD: Final = 32 * 1024
"""Bytes from which a request is decoded, and its answer encoded, in a thread: in the loop it would
take up to a second per megabyte, and an answer may be larger than its request."""

_TOKEN_BYTES: Final = 1024
"""A request takes one token of its address's rate, and one more for each of so many bytes."""

_OVERHEAD_BYTES: Final = 64
"""Memory that a request takes beside its bytes, until it is processed."""

_DETAIL_LENGTH: Final = 200
"""Characters of a reason that are logged: it may have what the client sent, such as its name."""

_READ_AHEAD: Final = 64 * 1024
"""Bytes from which nothing more is read while there is a whole request to process."""


class _ClosedError(RegentError):
    """The connection is to be closed."""

    def __init__(
        self, reason: CloseReason, detail: str = "", *, refusal: Refusal | None = None
    ) -> None:
        super().__init__(detail or reason.value)
        self.reason = reason
        self.detail = detail
        self.refusal = refusal


class ServerConnection(asyncio.Protocol):
    """Made by the server for each connection that it accepts.

    Implements :class:`~regent.network.connection_registry.Limited`.

    Args:
        server: What connections share.
        tasks: Has the task of each connection until it is done. No task fails.
        listener: Name of the listener to which it was made.
    """

    def __init__(self, server: ServerParts, tasks: set[asyncio.Task[None]], listener: str) -> None:
        self._server = server
        self._tasks = tasks
        self._listener = listener
        self._limits = server.settings.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._tls: MeasuredTls | None = None
        self._reader = FrameReader(max_frame_size=self._limits.frame_bytes)
        self._frames: deque[bytes] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._can_write = True
        self._reason: CloseReason | None = None
        self._address = ("", 0)
        self._task: asyncio.Task[None] | None = None
        self._upstream: Upstream | None = None
        self._processed_bytes = 0
        self._muted_until = 0.0
        self.group = ""
        self.is_broker = False
        self.is_busy = False
        self.is_authenticated = False
        self.last_active = self._loop.time()
        self.buffered_bytes = 0

    def end(
        self,
        reason: CloseReason,
        detail: str = "",
        *,
        refusal: Refusal | None = None,
        defect: Exception | None = None,
    ) -> None:
        """Close at once, unless that has happened; what has not been sent is dropped."""
        if self._reason is not None:
            return
        self._reason = reason
        self._server.registry.remove(self)
        self._server.statistics.closed[reason] += 1
        if refusal is None:
            address, port = self._address
            fields = {"address": address, "port": port, "detail": detail[:_DETAIL_LENGTH]}
            self._server.close_log.closed(
                reason, now=self._loop.time(), fields=fields, defect=defect
            )
        else:
            self._server.refusals.add(refusal)
        self._frames.clear()
        self._transport.abort()
        self._tls = None  # which refers to this: no circle is to keep what has ended
        if self._upstream is not None:
            self._upstream.close()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in, or close it."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.pause_reading()
        self._transport.set_write_buffer_limits(high=0)
        peer = transport.get_extra_info("peername") or ("", 0)
        self._address = (plain_address(peer[0]), peer[1])
        self.group = address_group(self._address[0])
        self._server.statistics.accepted += 1
        if self._server.is_stopping:
            self.end(CloseReason.STOPPED)
            return
        refusal = self._server.registry.admit(self, now=self._loop.time())
        if refusal is not None:
            self.end(refusal)
            return
        self._task = self._loop.create_task(self._run(), name=f"client-{peer[0]}:{peer[1]}")
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def data_received(self, data: bytes) -> None:
        """Take bytes; stop reading when there is enough to do."""
        if self._reason is not None:
            return
        try:
            frames = self._reader.feed(data)
        except FrameError as error:
            self.end(CloseReason.FRAME_SIZE, str(error))
            return
        self._frames.extend(frames)
        if self._tls is not None:
            self._tls.requests_came(len(data), len(frames))
        taken = len(data) + len(frames) * _OVERHEAD_BYTES
        self._server.registry.buffer(self, self.buffered_bytes + taken)
        if self._frames and self.buffered_bytes > _READ_AHEAD:
            self._transport.pause_reading()
        self._wake_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, by whomever."""
        self.end(CloseReason.PEER)

    def pause_writing(self) -> None:
        """The peer is to take an answer first."""
        self._can_write = False

    def resume_writing(self) -> None:
        """The peer has taken everything."""
        self._can_write = True
        self._wake_up()

    # Service

    async def _run(self) -> None:
        try:
            await self._serve()
        except _ClosedError as closed:
            self.end(closed.reason, closed.detail, refusal=closed.refusal)
        except UnsupportedRequestError as error:
            self.end(CloseReason.UNSUPPORTED, str(error))
        except UpstreamError as error:
            clear_frames(error)
            self.end(CloseReason.UPSTREAM, str(error))
        except NotPassedOnError as error:
            self.end(CloseReason.NOT_PASSED_ON, str(error))
        except DecodeError as error:
            self.end(CloseReason.MALFORMED, str(error))
        except asyncio.CancelledError:  # the task would keep it, and with its frames this
            if self._reason is None:
                raise
        except Exception as error:  # noqa: BLE001 - a defect of one request ends its connection only
            self.end(CloseReason.FAILED, repr(error), defect=error)

    async def _serve(self) -> None:
        proved = None
        async with self._within(self._limits.authentication_s, CloseReason.AUTHENTICATION_TIME):
            principal = await self._start_tls()
            self._transport.resume_reading()
            if self._server.settings.sasl_mechanisms:
                username, proved = await self._authenticate()
                principal = user_principal(username)
        settings = self._server.settings
        peer = Peer(
            address=self._address[0],
            port=self._address[1],
            principal=principal,
            listener=self._listener,
            security_protocol=settings.security_protocol,
        )
        if self._server.pass_through is not None:
            self._upstream = self._server.pass_through.upstream(peer, proved, group=self.group)
        self.is_authenticated = True
        self._reader.max_frame_size = self._limits.frame_bytes
        # A dispatcher may have answered although it was cancelled: its connection is closed then.
        while self._reason is None and not self._server.is_stopping:
            frame = await self._next_frame()
            self.is_busy = True
            await self._process(frame, peer)
            self.is_busy = False
        raise _ClosedError(CloseReason.STOPPED)

    async def _start_tls(self) -> str:
        """Change to TLS, if the listener has it; the principal of the client's certificate."""
        tls = self._server.tls
        if tls is None:
            return ANONYMOUS
        try:
            with freed_if_tls_fails():
                transport = await self._loop.start_tls(
                    self._transport,
                    self,
                    tls.context(),
                    server_side=True,
                    ssl_handshake_timeout=self._limits.authentication_s,
                    ssl_shutdown_timeout=self._limits.stop_s,
                )
        except ssl.SSLError as error:
            self._server.statistics.failed_authentications += 1
            remedy = remedy_for_client(error, own_problem=tls.problem())
            refusal = self._refusal(CloseReason.TLS, str(error), remedy)
            raise _ClosedError(CloseReason.TLS, refusal=refusal) from error
        except OSError as error:  # it has gone: a health check, for instance
            self._server.statistics.failed_authentications += 1
            raise _ClosedError(CloseReason.TLS, str(error)) from error
        if transport is None:
            raise _ClosedError(CloseReason.PEER)
        self._tls = MeasuredTls(
            cast(asyncio.BufferedProtocol, self._transport.get_protocol()),
            is_reading=transport.is_reading,
            exceeded=lambda: self.end(CloseReason.TLS, "far more TLS than is in it"),
        )
        self._transport.set_protocol(self._tls)
        self._transport = transport
        # What is read ahead, and not decrypted, is counted nowhere.
        cast(Any, transport).set_read_buffer_limits(high=READ_BYTES, low=0)
        # Not 0: such a transport pauses writing from this size on, a plain one above it.
        self._transport.set_write_buffer_limits(high=1, low=0)
        certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        try:
            return user_principal(subject_of(certificate))
        except ValueError as error:
            raise _ClosedError(CloseReason.TLS, f"the client's certificate: {error}") from error

    async def _authenticate(self) -> tuple[str, Authenticating | None]:
        """Let the client authenticate by SASL; the user, and what it has proved to know."""
        server = self._server
        assert server.credentials is not None
        self._reader.max_frame_size = self._limits.unauthenticated_frame_bytes
        authenticator = SaslServerAuthenticator(
            server.codec,
            mechanisms=server.settings.sasl_mechanisms,
            credentials=server.credentials,
            nonce=lambda: secrets.token_urlsafe(24),
            api_versions=server.api_versions,
        )
        while authenticator.username is None:
            frame = await self._next_frame()
            try:
                step = await metered(authenticator.step(frame), self._spent)
            except UnsupportedRequestError as error:
                answer = unsupported_answer(self._server.codec, error)
                if answer is None:
                    raise
                await self._write(answer)
                continue
            if step.failure is not None:
                server.statistics.failed_authentications += 1
                await asyncio.sleep(self._limits.failed_authentication_delay_s)
                if step.answer is not None:
                    await self._write(step.answer)
                refusal = self._refusal(
                    CloseReason.AUTHENTICATION, step.failure, step.remedy, user=step.claimed
                )
                raise _ClosedError(CloseReason.AUTHENTICATION, refusal=refusal)
            if step.answer is not None:
                await self._write(step.answer)
        return authenticator.username, authenticator.proved

    def _refusal(
        self, reason: CloseReason, detail: str, remedy: str, *, user: str | None = None
    ) -> Refusal:
        return Refusal(
            kind=reason.value,
            principal=None if user is None else user_principal(user[:_DETAIL_LENGTH]),
            address=self._address[0],
            listener=self._listener,
            reason=detail[:_DETAIL_LENGTH],
            remedy=remedy,
        )

    async def _next_frame(self) -> bytes:
        """The next request, when its turn has come. The one before is done then."""
        self._server.registry.buffer(self, self.buffered_bytes - self._processed_bytes)
        self._processed_bytes = 0
        if not self._frames:
            self._transport.resume_reading()
            if not self._reader.pending:
                async with self._within(self._limits.idle_s, CloseReason.IDLE):
                    await self._until(lambda: bool(self._frames or self._reader.pending))
            if not self._frames:
                async with self._within(self._limits.frame_s, CloseReason.SLOW_REQUEST):
                    await self._until(lambda: bool(self._frames))
        frame = self._frames.popleft()
        self._processed_bytes = len(frame) + 4 + _OVERHEAD_BYTES
        self.last_active = self._loop.time()
        await self._server.registry.wait_turn(self, 1 + len(frame) // _TOKEN_BYTES)
        if self._muted_until > self._loop.time():
            await asyncio.sleep(self._muted_until - self._loop.time())
        return frame

    async def _process(self, frame: bytes, peer: Peer) -> None:
        """Answer a request, or have it answered by a broker."""
        header = request_header(frame)
        name = self._server.passed_on.get(header.api_key)
        if name is not None:
            self._server.statistics.requests[name] += 1
            await self._relay(header, frame)
            return
        answer = await metered(self._answer(header, frame, peer), self._spent)
        if isinstance(answer, bytes):
            await self._write(answer)
        elif answer.request is None and answer.merged is None:
            await self._relay(header, frame)
        else:
            await self._write(await metered(self._merge(frame, answer), self._spent))

    async def _relay(self, header: RequestHeader, frame: bytes) -> None:
        """Pass a request on, and the answer back."""
        if self._upstream is None or has_no_answer(header, frame):
            # As a broker that does not lead the partition: it cannot say so otherwise (acks=0).
            raise _ClosedError(CloseReason.ANSWERED_BY_CLOSE)
        async with self._within(self._limits.request_s, CloseReason.REQUEST_TIME):
            await self._upstream.relay(header, frame, self._write)

    async def _merge(self, frame: bytes, step: PassOn) -> bytes:
        """Pass a part of a request on; the answer that is made of the broker's."""
        if self._upstream is None:
            raise _ClosedError(CloseReason.ANSWERED_BY_CLOSE)
        codec = self._server.codec
        header = (await self._decode(frame)).header
        passed_on = frame
        if step.request is not None:
            passed_on = await self._convert(frame, codec.encode_request, header, step.request)
        async with self._within(self._limits.request_s, CloseReason.REQUEST_TIME):
            raw = await self._upstream.ask(header, passed_on)
            answer = await self._convert(raw, codec.decode_answer, header, raw)
        merged = answer if step.merged is None else step.merged(answer)
        return await self._convert(raw, codec.encode, header, merged)

    async def _answer(self, header: RequestHeader, frame: bytes, peer: Peer) -> bytes | PassOn:
        async with self._within(self._limits.request_s, CloseReason.REQUEST_TIME):
            # Who is judged takes no place: it may wait for a name server.
            entity = await self._unread_answer(header, peer)
            if entity is None:
                try:
                    header, entity = await self._dispatched(frame, peer)
                except UnsupportedRequestError as error:
                    answer = unsupported_answer(self._server.codec, error)
                    if answer is None:
                        raise
                    return answer
        if isinstance(entity, Close):
            raise _ClosedError(CloseReason.ANSWERED_BY_CLOSE)
        if isinstance(entity, PassOn):
            return entity
        if isinstance(entity, Throttled):
            self._muted_until = self._loop.time() + entity.seconds
            entity = entity.entity
        encode = self._server.codec.encode
        return await self._convert(frame, encode, header, entity, is_large=is_large(entity))

    async def _dispatched(self, frame: bytes, peer: Peer) -> tuple[RequestHeader, Any]:
        """The whole header of a request, and what the dispatcher answers."""
        statistics = self._server.statistics
        async with self._server.slots:
            statistics.requests_in_progress += 1
            try:
                request = await self._decode(frame)
                return request.header, await self._entity(request, peer)
            finally:
                statistics.requests_in_progress -= 1

    async def _unread_answer(self, header: RequestHeader, peer: Peer) -> Any | Close | None:
        """The answer to who may not ask this; None: the request is to be read."""
        admission = await self._server.admit(header, peer)
        self.is_broker = admission.is_broker
        if admission.answer is not None:
            self._server.statistics.requests[self._server.codec.apis[header.api_key].name] += 1
        return admission.answer

    def _spent(self, seconds: float) -> None:
        self._server.registry.spent(self, seconds)

    async def _decode(self, frame: bytes) -> Request:
        return await self._convert(frame, self._server.codec.decode, frame)

    async def _convert(
        self, frame: bytes, convert: Callable[..., T], *values: Any, is_large: bool = False
    ) -> T:
        """Bytes to an entity or back. What belongs to a large request takes long: the answer has an
        error for each thing that the request names. So does a large answer to a small one."""
        if len(frame) < _CONVERTED_IN_THREAD and not is_large:
            return convert(*values)
        spent_s, result = await self._loop.run_in_executor(
            self._server.decoders[self.is_broker], _timed, convert, values
        )
        self._spent(spent_s)
        return result

    async def _entity(self, request: Request, peer: Peer) -> Any | Close | PassOn | Throttled:
        api_key = request.header.api_key
        self._server.statistics.requests[self._server.codec.apis[api_key].name] += 1
        if api_key == API_VERSIONS.key:
            return self._server.api_versions(request)
        if api_key in (SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key):
            return refuse_sasl(request)
        if self.is_broker:
            peer = msgspec.structs.replace(peer, is_broker=True)
        return await self._server.dispatcher(request, peer)

    async def _write(self, answer: bytes) -> None:
        """Send an answer, and wait until it has left the process."""
        self._transport.write(answer)
        if not self._can_write:
            async with self._within(self._limits.frame_s, CloseReason.SLOW_TO_TAKE_ANSWER):
                await self._until(lambda: self._can_write)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._wake = self._loop.create_future()
            await self._wake

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    @contextlib.asynccontextmanager
    async def _within(self, seconds: float, reason: CloseReason) -> AsyncIterator[None]:
        """Close the connection for this reason if the block takes longer."""
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                yield
        except TimeoutError:
            if timeout.expired():
                raise _ClosedError(reason) from None
            raise


def _timed(convert: Callable[..., T], values: tuple[Any, ...]) -> tuple[float, T]:
    """For how many seconds a conversion has taken the processor, and its result."""
    began = time.thread_time()
    result = convert(*values)
    return time.thread_time() - began, result
