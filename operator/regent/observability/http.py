"""The HTTP endpoint: metrics, probes, and the status that ``regent status`` shows.

Probes look at progress, not at whether the process answers: a loop that has been at one event for
minutes is dead, even though a thread of the same process can still speak HTTP.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

Probe = Callable[[], str | None]
"""Why the process is not well, or None if it is."""


class HttpEndpoint:
    """Serves on a thread of its own until :meth:`close`.

    Args:
        liveness: Answer of ``/healthz``: a problem that only a restart mends.
        readiness: Answer of ``/readyz``: a reason not to rely on this process yet.
        remark: Added to the answer of ``/readyz`` while the process is ready: what somebody has to
            mend.
        status: Answer of ``/status``, as JSON.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        registry: CollectorRegistry,
        liveness: Probe,
        readiness: Probe,
        status: Callable[[], dict[str, object]],
        remark: Probe = lambda: None,
    ) -> None:
        self._metrics = make_wsgi_app(registry)
        self._probes = {"/healthz": liveness, "/readyz": readiness}
        self._remark = remark
        self._status = status
        self._server = make_server(
            host, port, self._answer, server_class=_server_class(host), handler_class=_QuietHandler
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="http", kwargs={"poll_interval": 0.1}
        )

    @property
    def port(self) -> int:
        return self._server.server_port

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if path == "/metrics":
            metrics: Iterable[bytes] = self._metrics(environ, start_response)
            return metrics
        probe = self._probes.get(path)
        if probe is not None:
            problem = probe()
            status = "200 OK" if problem is None else "503 Service Unavailable"
            if problem is None and path == "/readyz" and (remark := self._remark()) is not None:
                return _text(start_response, status, f"ok, but {remark}")
            return _text(start_response, status, problem or "ok")
        if path == "/status":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self._status()).encode()]
        return _text(start_response, "404 Not Found", "try /metrics /healthz /readyz /status")


def _text(start_response: StartResponse, status: str, text: str) -> list[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode() + b"\n"]


def _server_class(host: str) -> type[WSGIServer]:
    return _Ipv6Server if ":" in host else WSGIServer


class _Ipv6Server(WSGIServer):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    """Scrapes and probes come every few seconds: they are logged for debugging only."""

    timeout = 10

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        logging.getLogger(__name__).debug("HTTP request", extra={"request": format % args})
