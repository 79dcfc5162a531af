"""Where drivers of planning jobs fetch their tasks and hand in their answers: HTTP, by token.

It runs in the loop of the Kubernetes side, which waits for the answers. It holds nothing but what
this process waits for; docs/spark.md says how the other replicas of Regent come in.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import re
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web

from regent.kube.plan_exchange_port import PlannerAnswer
from regent.kube.plan_runner import PlanTask
from regent.model.errors import ConfigurationError
from regent.network.server_tls import renewing_context
from regent.network.tls import ReloadingTls
from regent.observability.http_connections import ConnectionLimiter, HttpLimits
from regent.observability.http_serving import serving
from regent.settings import Settings
from regent.sockets.listening import listening_socket

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

logger = logging.getLogger(__name__)

STATUS_HEADER: Final = "Regent-Planner-Status"
ANSWERED_KNOWN: Final = 1024
"""Jobs that have answered; the drivers of older ones have long ended."""

_STATUS: Final = re.compile(r"-?[0-9]{1,3}", re.ASCII)
_BEARER: Final = "Bearer "
_LIMITS: Final = HttpLimits(connections=64, request_s=10.0, total_s=600.0)
"""A plan of a hundred megabytes may come by a slow network."""

_STALLED_S: Final = 30.0
"""Without a byte of an answer: its driver has vanished. Shorter than a driver tries for."""

_CHUNK_BYTES: Final = 256 * 1024


class OfferedTask:
    """Implements :class:`~regent.kube.plan_exchange_port.Offer`."""

    def __init__(self, task: PlanTask, token_sha256: str) -> None:
        self.task = task
        self.token_sha256 = token_sha256
        self.is_receiving = False
        self._answer: PlannerAnswer | None = None
        self._answered = asyncio.Event()

    @property
    def answer(self) -> PlannerAnswer | None:
        """See :class:`~regent.kube.plan_exchange_port.Offer`."""
        return self._answer

    async def wait(self, timeout_s: float) -> PlannerAnswer | None:
        """See :class:`~regent.kube.plan_exchange_port.Offer`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._answered.wait()
        return self._answer

    def hand_in(self, answer: PlannerAnswer) -> None:
        """Take the answer."""
        self._answer = answer
        self._answered.set()


class PlanExchange:
    """Implements :class:`~regent.kube.plan_exchange_port.PlanExchangePort`. Answers while
    :meth:`served`.

    Args:
        listening: A socket that listens; it is closed at the end.
        url: Under which drivers reach it; None: the socket's address.
        tls: None: plain HTTP.
        authorities: File with the certificates by which drivers know it; None: they know it.
        max_bytes: Size of an answer.
        stalled_s: An answer of which nothing comes for so many seconds is given up, so that the
            job's next driver, or the same one on another connection, can hand in its own.
    """

    def __init__(
        self,
        listening: socket.socket,
        *,
        url: str | None = None,
        tls: ReloadingTls | None = None,
        authorities: Path | None = None,
        max_bytes: int,
        limits: HttpLimits = _LIMITS,
        stalled_s: float = _STALLED_S,
    ) -> None:
        self._socket = listening
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self._url = url or f"{'http' if tls is None else 'https'}://{shown}:{port}"
        self._tls = tls
        self._authorities = authorities
        self._max_bytes = max_bytes
        self._limits = limits
        self._stalled_s = stalled_s
        self._offers: list[OfferedTask] = []
        self._answered: deque[str] = deque(maxlen=ANSWERED_KNOWN)
        self._connections: ConnectionLimiter | None = None

    @property
    def url(self) -> str:
        """See :class:`~regent.kube.plan_exchange_port.PlanExchangePort`."""
        return self._url

    @property
    def authorities(self) -> str | None:
        """See :class:`~regent.kube.plan_exchange_port.PlanExchangePort`. Read each time:
        the file is renewed."""
        return None if self._authorities is None else self._authorities.read_text("ascii")

    @contextlib.contextmanager
    def offer(self, task: PlanTask, *, token_sha256: str) -> Iterator[OfferedTask]:
        """See :class:`~regent.kube.plan_exchange_port.PlanExchangePort`."""
        offered = OfferedTask(task, token_sha256)
        self._offers.append(offered)
        try:
            yield offered
        finally:
            self._offers.remove(offered)
            if offered.answer is not None:
                self._answered.append(token_sha256)

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Serve drivers as long as the context lasts."""
        application = web.Application(middlewares=[self._guarded])
        application.router.add_get("/v1/task", self._give_task, allow_head=False)
        application.router.add_get("/v1/snapshot", self._give_snapshot, allow_head=False)
        application.router.add_put("/v1/answer", self._take_answer)
        tls = None if self._tls is None else renewing_context(self._tls)
        async with serving(application, self._socket, self._limits, tls=tls) as connections:
            self._connections = connections
            yield

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note that the request is complete; turn failures of ours into an answer."""
        if self._connections is not None:
            self._connections.request_received(request.transport)
        try:
            return await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception:
            logger.exception("HTTP request of a driver failed", extra={"path": request.path})
            return _said(HTTPStatus.INTERNAL_SERVER_ERROR, "this is a defect; Regent's log has it")

    def _offered_to(self, request: web.Request) -> OfferedTask | web.Response:
        """The task whose token a request has; a refusal if none has it. All are compared, in
        constant time each.

        Of several with one token it is the first: who copies a job's annotation gets nothing.
        """
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(_BEARER) if header.startswith(_BEARER) else ""
        digest = hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
        found = None
        for offered in self._offers:
            if hmac.compare_digest(offered.token_sha256, digest) and found is None:
                found = offered
        if found is not None:
            return found
        has_answered = [hmac.compare_digest(each, digest) for each in self._answered]
        return _answered() if any(has_answered) else _unknown()

    async def _give_task(self, request: web.Request) -> web.StreamResponse:
        offered = self._offered_to(request)
        if isinstance(offered, web.Response):
            return offered
        return web.json_response(list(offered.task.goals.arguments()))

    async def _give_snapshot(self, request: web.Request) -> web.StreamResponse:
        offered = self._offered_to(request)
        if isinstance(offered, web.Response):
            return offered
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        content = memoryview(offered.task.snapshot)
        response.content_length = len(content)
        await response.prepare(request)
        for begin in range(0, len(content), _CHUNK_BYTES):
            await response.write(content[begin : begin + _CHUNK_BYTES])
        await response.write_eof()
        return response

    async def _take_answer(self, request: web.Request) -> web.StreamResponse:
        offered = self._offered_to(request)
        if isinstance(offered, web.Response):
            return offered
        status = request.headers.get(STATUS_HEADER, "")
        if _STATUS.fullmatch(status) is None:
            return _said(
                HTTPStatus.BAD_REQUEST,
                f"the header {STATUS_HEADER} is {status!r}, no exit status of a planner",
            )
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            return _said(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                f"an answer is taken as it is, not in {encoding!r}",
            )
        length = request.content_length
        if length is None:
            return _said(HTTPStatus.LENGTH_REQUIRED, "say Content-Length")
        if length > self._max_bytes:
            return _said(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the answer has {length:,} bytes, and at most {self._max_bytes:,} are taken: "
                "Regent's setting planner_exchange_max_bytes",
            )
        if offered.answer is not None:
            return _answered()
        if offered.is_receiving:
            return _said(HTTPStatus.SERVICE_UNAVAILABLE, "another answer of this job is coming")
        offered.is_receiving = True
        try:
            body = await _body(request, self._stalled_s)
        except TimeoutError:
            return _said(
                HTTPStatus.REQUEST_TIMEOUT,
                f"nothing of the answer came for {self._stalled_s:g} seconds",
            )
        finally:
            offered.is_receiving = False
        offered.hand_in(PlannerAnswer(int(status), body))
        logger.info("A planner has answered", extra={"status": int(status), "bytes": length})
        return web.Response(status=HTTPStatus.NO_CONTENT)


async def _body(request: web.Request, stalled_s: float) -> bytes:
    """The body, whose length has been checked.

    Raises:
        TimeoutError: nothing came for so many seconds.
    """
    body = bytearray()
    while not request.content.at_eof():
        async with asyncio.timeout(stalled_s):
            body += await request.content.readany()
    return bytes(body)


def _said(status: HTTPStatus, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n")


def _answered() -> web.Response:
    return _said(HTTPStatus.CONFLICT, "this job has answered already")


def _unknown() -> web.Response:
    response = _said(
        HTTPStatus.UNAUTHORIZED,
        "no job with this token is waited for here; another replica of Regent may know it",
    )
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def open_exchange(settings: Settings) -> PlanExchange | None:
    """The exchange of the settings, listening; None without ``planner_exchange_port``.

    Raises:
        ConfigurationError: The address cannot be listened on, a file cannot be used, or a setting
            contradicts another one.
    """
    port, url = settings.planner_exchange_port, settings.planner_exchange_url
    if port is None:
        if url is not None:
            raise ConfigurationError(
                f"planner_exchange_url is {url}, and nothing is served: set planner_exchange_port"
            )
        return None
    tls = _tls(settings)
    scheme = "http" if tls is None else "https"
    if url is not None and not url.startswith(f"{scheme}://"):
        raise ConfigurationError(
            f"planner_exchange_url is {url}, but the exchange speaks {scheme}: change the URL, or "
            "planner_exchange_tls_certificate_file"
        )
    return PlanExchange(
        listening_socket(settings.planner_exchange_host, port, setting="planner_exchange"),
        url=url,
        tls=tls,
        authorities=settings.planner_exchange_tls_ca_file,
        max_bytes=settings.planner_exchange_max_bytes,
    )


def _tls(settings: Settings) -> ReloadingTls | None:
    certificate = settings.planner_exchange_tls_certificate_file
    key, authorities = settings.planner_exchange_tls_key_file, settings.planner_exchange_tls_ca_file
    if certificate is None:
        for name, file in (("key", key), ("ca", authorities)):
            if file is not None:
                raise ConfigurationError(
                    f"planner_exchange_tls_{name}_file is {file}, but there is no "
                    "planner_exchange_tls_certificate_file"
                )
        return None
    if key is None:
        raise ConfigurationError(
            f"planner_exchange_tls_certificate_file is {certificate}, but there is no "
            "planner_exchange_tls_key_file"
        )

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # With a password OpenSSL does not ask for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
        if authorities is not None:
            # Drivers get it: better now than when the first one refuses the exchange.
            ssl.create_default_context(cafile=str(authorities))
        return context

    return ReloadingTls(
        "TLS of the planner's exchange",
        (certificate, key, authorities),
        make,
        certificate=certificate,
    )
