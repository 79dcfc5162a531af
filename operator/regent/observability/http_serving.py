"""What the HTTP servers of a Regent have in common: sockets, bounds, one request per connection."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from regent.observability.http_connections import ConnectionLimiter, HttpLimits
from regent.sockets.accepting import accept_one_by_one, stop_accepting

logger = logging.getLogger(__name__)

_SHUTDOWN_S: Final = 0.1
"""For handlers whose connection has been cut: there is no client to answer."""


@contextlib.asynccontextmanager
async def serving(
    application: web.Application,
    listening: socket.socket,
    limits: HttpLimits,
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[ConnectionLimiter]:
    """Serve an application as long as the context lasts; then open connections are cut.

    The application says of each request that it is complete
    (:meth:`~regent.observability.http_connections.ConnectionLimiter.request_received`).
    """
    # One request each: so a bound for the connection is one for the request.
    application.on_response_prepare.append(_close_afterwards)
    runner = web.AppRunner(
        application,
        access_log=None,  # scrapes and probes come every few seconds
        logger=_server_logger(),
        keepalive_timeout=limits.request_s,
        lingering_time=0,
        shutdown_timeout=_SHUTDOWN_S,
        max_line_size=limits.line_bytes,
        max_field_size=limits.line_bytes,
        max_headers=limits.headers,
        auto_decompress=False,  # a bound of a body's length would say nothing of its size
    )
    await runner.setup()
    assert runner.server is not None
    connections = ConnectionLimiter(runner.server, limits, tls=tls)
    server = await accept_one_by_one(connections, listening)
    try:
        yield connections
    finally:
        await stop_accepting(server)
        connections.close()
        await runner.cleanup()


async def _close_afterwards(_: web.Request, response: web.StreamResponse) -> None:
    """And say so: a client that does not know may send its next request on a connection that is
    just being closed. Go's sends a POST no second time."""
    response.force_close()
    response.headers[hdrs.CONNECTION] = "close"  # the headers are made already


def _server_logger() -> logging.Logger:
    server_logger = logging.getLogger(f"{__name__}.server")
    server_logger.addFilter(_is_no_clients_mistake)
    return server_logger


def _is_no_clients_mistake(record: logging.LogRecord) -> bool:
    """Whether aiohttp reports something else than a client that speaks no HTTP, or has gone."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if not isinstance(error, HttpProcessingError | ConnectionError):
        return True
    logger.debug("HTTP request refused", extra={"error": str(error)})
    return False
