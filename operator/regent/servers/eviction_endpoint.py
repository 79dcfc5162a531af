"""Where the API server asks whether a pod may be evicted: a webhook of every replica.

It answers in the loop of the process, where the client of the API lives. What peers can take is
bounded as for the HTTP endpoint.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import random
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from regent.files.small_files import read_small
from regent.kube.client import KubeClient
from regent.kube.errors import KubeError
from regent.kube.eviction.hook import EvictionHook
from regent.kube.eviction.reviews import ReviewError, answer, read_review
from regent.kube.health import KubeHealth
from regent.kube.settings import KubeSettings
from regent.kube.shared_clock import shared_clock
from regent.kube.supervisor import supervise
from regent.kube.waiting import unless_set
from regent.model.errors import ConfigurationError
from regent.network.server_tls import renewing_context, server_tls
from regent.observability.http_connections import ConnectionLimiter, HttpLimits
from regent.observability.http_serving import serving
from regent.servers.eviction_settings import eviction_tls_files
from regent.settings import Settings
from regent.sockets.listening import listening_socket

logger = logging.getLogger(__name__)

_BODY_BYTES: Final = 512 * 1024
_MAX_CONNECTIONS: Final = 4
_TIMEOUT_S: Final = 8.0
"""For a verdict, and for each request to the API server that it takes. The API server waits ten
seconds for a webhook by default."""


class EvictionEndpoint:
    """Listens from its construction on, and answers in :meth:`run`.

    Args:
        settings: Those of the process. They name a port.
        kube: Which BrokerDrains are served, and how evictions are dealt with.

    Raises:
        ConfigurationError: The address cannot be listened on, or a file cannot be used.
    """

    def __init__(self, settings: Settings, kube: KubeSettings) -> None:
        assert settings.eviction_port is not None, "no eviction_port"
        assert kube.evictions is not None, "no settings of evictions"
        self._evictions = kube.evictions
        self._kube = kube
        self._token_file = settings.eviction_token_file
        self._tls = server_tls(eviction_tls_files(settings), title="TLS of the eviction hook")
        _token(self._token_file)
        self._socket = listening_socket(
            settings.eviction_host, settings.eviction_port, setting="eviction"
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._socket.getsockname()[1]
        return port

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    async def run(self, stop_event: asyncio.Event, health: KubeHealth) -> None:
        """Answer until ``stop_event`` is set. A defect is logged and followed by another
        attempt."""

        async def answer_on() -> None:
            await unless_set(self._answer(), stop_event)

        await supervise(answer_on, stop_event=stop_event, health=health, jitter=random.random)

    async def _answer(self) -> None:
        async with KubeClient(
            max_connections=_MAX_CONNECTIONS, request_timeout_s=_TIMEOUT_S
        ) as client:
            hook = EvictionHook(client, self._evictions, self._kube, now=shared_clock(client))
            await self._serve(hook)

    async def _serve(self, hook: EvictionHook) -> None:
        limits = HttpLimits()
        application = web.Application(client_max_size=_BODY_BYTES)
        handler = _Handler(hook, self._token_file)
        application.router.add_post("/evictions", handler.answer)
        application.router.add_post("/evictions/{token}", handler.answer)
        # The socket is closed with the server, which may be started again.
        async with serving(
            application, self._socket.dup(), limits, tls=renewing_context(self._tls)
        ) as connections:
            handler.connections = connections
            logger.info("Evictions can be asked for", extra={"port": self.port})
            await asyncio.get_running_loop().create_future()


class _Handler:
    """Answers requests.

    Attributes:
        connections: Those of the server.
    """

    def __init__(self, hook: EvictionHook, token_file: Path | None) -> None:
        self._hook = hook
        self._token_file = token_file
        self.connections: ConnectionLimiter | None = None

    async def answer(self, request: web.Request) -> web.Response:
        """An AdmissionReview; an error has the API server do what its failurePolicy says."""
        payload = await request.read()
        if self.connections is not None:
            self.connections.request_received(request.transport)
        try:
            if not _may_ask(request.match_info.get("token", ""), _token(self._token_file)):
                return web.Response(status=404, text="there is nothing here\n")
            review = read_review(payload)
            async with asyncio.timeout(_TIMEOUT_S):
                verdict = await self._hook.verdict(review)
        except ReviewError as error:
            return web.Response(status=400, text=f"{error}\n")
        except TimeoutError:
            problem = f"there was no verdict within {_TIMEOUT_S:g} s"
            logger.warning("An eviction cannot be decided", extra={"problem": problem})
            return web.Response(status=500, text=f"{problem}\n")
        except (KubeError, ConfigurationError) as error:
            logger.warning("An eviction cannot be decided", extra={"problem": str(error)})
            return web.Response(status=500, text=f"{error}\n")
        response: dict[str, Any] = answer(review, verdict)
        return web.json_response(response)


def _may_ask(given: str, token: str | None) -> bool:
    return hmac.compare_digest(given.encode(), (token or "").encode())


def _token(file: Path | None) -> str | None:
    """The secret of a file; None: nobody needs one.

    Raises:
        ConfigurationError: The file cannot be read, or has none.
    """
    if file is None:
        return None
    try:
        token = read_small(file).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"eviction_token_file {file} cannot be read: {error}") from error
    if not token.isalnum():
        raise ConfigurationError(
            f"eviction_token_file {file} has to have one word of letters and digits"
        )
    return token
