"""The HTTP endpoint: metrics, probes, what ``regent status`` shows, what ``regent why`` explains.

Probes look at progress, not at whether the process answers: a loop that has been at one event for
minutes is dead, even though a thread of the same process can still speak HTTP. So the endpoint has
a thread and a loop of its own. In that loop nothing may take long, or a probe would wait for it:
metrics are rendered in a further thread, and :class:`HttpLimits` bounds what a client can take.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import choose_encoder

from regent.observability.http_connections import ConnectionLimiter, HttpLimits
from regent.observability.http_serving import serving

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

logger = logging.getLogger(__name__)

Probe = Callable[[], str | None]
"""Why the process is not well, or None if it is."""


class JsonAnswer(NamedTuple):
    """An answer of the endpoint."""

    status: HTTPStatus
    body: dict[str, object]


StateChanges = Callable[[str, int | None], Awaitable[JsonAnswer]]
"""What is known of the changes of a topic, or of one of its partitions."""

_PARTITION: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_CHUNK_BYTES: Final = 64 * 1024
_PATHS: Final = "/metrics /healthz /readyz /status /why?topic=NAME[&partition=NUMBER]"


class HttpEndpoint:
    """Listens from its construction on, and serves between :meth:`start` and :meth:`close`.

    Args:
        liveness: Answer of ``/healthz``: a problem that only a restart solves.
        readiness: Answer of ``/readyz``: a reason not to rely on this process yet.
        remark: Added to the answer of ``/readyz`` while the process is ready: what somebody has to
            correct.
        status: Answer of ``/status``, as JSON.
        state_changes: Answer of ``/why``, awaited in the endpoint's loop. It may take a while.

    All others are called in the endpoint's thread and must answer at once.

    Raises:
        OSError: If the address cannot be listened on.
    """

    def __init__(
        self,
        *,
        listening: socket.socket,
        registry: CollectorRegistry,
        liveness: Probe,
        readiness: Probe,
        status: Callable[[], dict[str, object]],
        state_changes: StateChanges,
        limits: HttpLimits | None = None,
        remark: Probe = lambda: None,
    ) -> None:
        self._limits = limits or HttpLimits()
        self._exposition = make_wsgi_app(registry)
        self._probes = {"/healthz": liveness, "/readyz": readiness}
        self._remark = remark
        self._status = status
        self._state_changes = state_changes
        self._scrapes = 0
        self._queries = 0
        self._renderer = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._socket = listening
        self._started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._connections: ConnectionLimiter | None = None
        self._thread = threading.Thread(target=self._run, name="http")

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def connection_count(self) -> int:
        """Open connections."""
        return 0 if self._connections is None else len(self._connections)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()
        self._started.result()

    def close(self) -> None:
        """Stop serving. Open connections are cut, they delay nothing."""
        if self._thread.is_alive() and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.ident is not None:
            self._thread.join()
        self._renderer.shutdown(wait=False, cancel_futures=True)
        self._socket.close()

    # The endpoint's thread

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            if self._started.done():
                logger.critical("HTTP endpoint failed", exc_info=failure)
            else:
                self._started.set_exception(failure)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with serving(self._application(), self._socket, self._limits) as connections:
            self._connections = connections
            self._started.set_result(None)
            await self._stop.wait()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guarded])
        application.router.add_get("/metrics", self._answer_metrics, allow_head=False)
        application.router.add_get("/status", self._answer_status)
        application.router.add_get("/why", self._answer_why)
        for path in self._probes:
            application.router.add_get(path, self._answer_probe)
        return application

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note that the request is complete; turn failures of ours into an answer."""
        if self._connections is not None:
            self._connections.request_received(request.transport)
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return web.Response(status=404, text=f"try {_PATHS}\n")
        except (web.HTTPException, ConnectionError):
            raise
        except Exception:
            logger.exception("HTTP request failed", extra={"path": request.path})
            return web.Response(status=500, text="this is a defect; the log says more\n")

    async def _answer_probe(self, request: web.Request) -> web.Response:
        problem = self._probes[request.path]()
        if problem is not None:
            return web.Response(status=503, text=f"{problem}\n")
        remark = self._remark() if request.path == "/readyz" else None
        return web.Response(text="ok\n" if remark is None else f"ok, but {remark}\n")

    async def _answer_status(self, _: web.Request) -> web.Response:
        return web.json_response(self._status())

    async def _answer_why(self, request: web.Request) -> web.Response:
        topic, number = request.query.get("topic"), request.query.get("partition")
        if not topic or not (number is None or _PARTITION.fullmatch(number)):
            return _problem(HTTPStatus.BAD_REQUEST, "say /why?topic=NAME[&partition=NUMBER]")
        if self._queries >= self._limits.queries:
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many queries at the same time")
        self._queries += 1
        try:
            answer = await asyncio.wait_for(
                self._state_changes(topic, None if number is None else int(number)),
                self._limits.query_s,
            )
        except TimeoutError:
            busy = f"the controller is busy and did not answer within {self._limits.query_s:g} s"
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, busy)
        finally:
            self._queries -= 1
        return web.json_response(answer.body, status=answer.status)

    async def _answer_metrics(self, request: web.Request) -> web.StreamResponse:
        if self._scrapes >= self._limits.scrapes:
            return web.Response(status=503, text="too many scrapes at the same time\n")
        self._scrapes += 1
        try:
            loop = asyncio.get_running_loop()
            rendered = await loop.run_in_executor(self._renderer, self._render, _environ(request))
            return await _send(rendered, request)
        finally:
            self._scrapes -= 1

    def _render(self, environ: dict[str, str]) -> tuple[web.StreamResponse, bytes]:
        """What prometheus_client's own server would send. Takes long for a large registry."""
        response = web.StreamResponse()

        def start_response(status: str, headers: Iterable[tuple[str, str]]) -> None:
            response.set_status(int(status.split()[0]))
            response.headers.extend(headers)

        return response, b"".join(self._exposition(environ, start_response))


def _problem(status: HTTPStatus, problem: str) -> web.Response:
    return web.json_response({"problem": problem}, status=status)


async def _send(
    rendered: tuple[web.StreamResponse, bytes], request: web.Request
) -> web.StreamResponse:
    """Send a body as fast as the client takes it. Returns when the client has."""
    response, body = rendered
    response.content_length = len(body)
    await response.prepare(request)
    for begin in range(0, len(body), _CHUNK_BYTES):
        await response.write(body[begin : begin + _CHUNK_BYTES])
    await response.write_eof()
    return response


def _environ(request: web.Request) -> dict[str, str]:
    """The part of WSGI's environment that prometheus_client reads."""
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": request.path,
        "QUERY_STRING": request.query_string,
        "HTTP_ACCEPT": _understood(request.headers.get("Accept", "")),
        "HTTP_ACCEPT_ENCODING": request.headers.get("Accept-Encoding", ""),
    }


def _understood(accept: str) -> str:
    """Of a format whose version is no version, prometheus_client makes an error of its own; who
    asks for that gets the default."""
    try:
        choose_encoder(accept)
    except (TypeError, ValueError):
        return ""
    return accept
