"""The server of Kafka's protocol: accepts connections and lets others answer their requests.

What the controller needs of it: whatever peers do, memory, time in the loop and files are bounded,
and a request is answered or its connection closed.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import msgspec

from regent.model.errors import ConfigurationError
from regent.network.connection_registry import ConnectionRegistry
from regent.network.pass_through import PassThrough
from regent.network.refusal_log import RefusalLog
from regent.network.server_connection import ServerConnection
from regent.network.server_settings import ServerSettings
from regent.network.server_statistics import CloseLog, CloseReason, statistics_of
from regent.network.server_tls import server_tls
from regent.network.tls import Tls
from regent.protocol.api_versions_answer import (
    NO_FEATURES,
    Features,
    api_versions_answer,
    listed_versions,
)
from regent.protocol.passed_on import PASSED_ON
from regent.protocol.sasl import MECHANISMS
from regent.protocol.served_apis import CONNECTION_APIS, Api, table_of
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import Admit, Credentials, Dispatcher, admit_everybody
from regent.sockets.accepting import accept_one_by_one, stop_accepting
from regent.sockets.listening import listening_socket

logger = logging.getLogger(__name__)

_RESERVED_FILES: Final = 256
"""Files that are left for ZooKeeper, brokers, the HTTP endpoint, and connections being accepted."""


class KafkaServer:
    """Serves one listener, or several that are protected alike.

    All methods belong into one event loop.

    ApiVersions, SaslHandshake and SaslAuthenticate are answered here, everything else by the
    dispatcher.

    Args:
        settings: Where to listen, how connections are protected, and what peers may take.
        apis: What the dispatcher answers.
        dispatcher: Answers requests.
        admit: Judges who asks before a request is read.
        credentials: What clients have to prove by SASL.
        features: The cluster's features as they are now, for ApiVersions.
        pass_through: Passes on what any broker can answer; None: only what the dispatcher answers
            is served.
        listening: A socket that listens already; None: :meth:`start` opens one.
        further_listening: Names of further listeners, with a socket of each that listens already.
        refusals: Is informed of who is refused.

    Raises:
        ConfigurationError: If TLS or SASL cannot be used as set.

    Attributes:
        port: Where the server listens.
        statistics: What it has counted.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        apis: Iterable[Api],
        dispatcher: Dispatcher,
        admit: Admit = admit_everybody,
        credentials: Credentials | None = None,
        features: Callable[[], Features] = lambda: NO_FEATURES,
        pass_through: PassThrough | None = None,
        listening: socket.socket | None = None,
        further_listening: Mapping[str, socket.socket] = MappingProxyType({}),
        refusals: RefusalLog | None = None,
    ) -> None:
        unknown = [each for each in settings.sasl_mechanisms if each not in MECHANISMS]
        if unknown or (settings.sasl_mechanisms and credentials is None):
            raise ConfigurationError(
                f"SASL of the endpoint: {', '.join(unknown) or 'no credentials'}; there are "
                f"{', '.join(MECHANISMS)}, and each needs credentials"
            )
        settings = _fitting(
            settings, upstream=0 if pass_through is None else pass_through.settings.connections
        )
        self.codec = ServerCodec(table_of((*CONNECTION_APIS, *apis)))
        self.settings = settings
        self.port = settings.port
        self.tls: Tls | None = None if settings.tls is None else server_tls(settings.tls)
        self.credentials = credentials
        self.dispatcher = dispatcher
        self.admit = admit
        self.pass_through = pass_through
        self.passed_on = {} if pass_through is None else _names(PASSED_ON, without=self.codec.apis)
        names = (api.name for api in self.codec.apis.values())
        self.statistics = statistics_of((*names, *self.passed_on.values()))
        if pass_through is not None:
            pass_through.statistics = self.statistics
        self.registry = ConnectionRegistry(settings.limits, self.statistics)
        self.close_log = CloseLog()
        self.refusals = refusals or RefusalLog()
        self.slots = asyncio.Semaphore(settings.limits.requests_in_progress)
        # One thread for brokers and one for others: the objects made of a large request take many
        # times its size.
        self.decoders: Mapping[bool, Executor] = {
            is_broker: ThreadPoolExecutor(1, thread_name_prefix="kafka-server-decoder")
            for is_broker in (True, False)
        }
        self._listed = listed_versions(self.codec.apis)
        self._features = features
        self._listening = listening
        self._further_listening = further_listening
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    @property
    def is_stopping(self) -> bool:
        """Whether no further request is to be taken."""
        return self._is_stopping

    def api_versions(self, request: Request) -> Any:
        """Answer to an ApiVersions request.

        Raises:
            UpstreamError: If it is not known what requests can be passed on.
        """
        listed = self._listed
        if self.pass_through is not None:
            listed = self.pass_through.listed(self.codec.apis)
        return api_versions_answer(request, listed, self._features())

    def problem(self) -> str | None:
        """Why clients refuse to connect, or are not served, as far as it is known. May be called
        from any thread."""
        settings, passing = self.settings, self.pass_through
        problems = (
            None if self.tls is None else self.tls.problem(),
            None
            if passing is None
            else passing.problem(
                listener=settings.listener, security_protocol=settings.security_protocol
            ),
        )
        return "; ".join(each for each in problems if each) or None

    def refused_peers(self) -> Sequence[Mapping[str, str]]:
        """See :meth:`RefusalLog.recent`. May be called from any thread."""
        return self.refusals.recent()

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigurationError: If the address cannot be listened on.
        """
        settings = self.settings
        listening = self._listening
        if listening is None:
            listening = listening_socket(settings.host, settings.port, setting="endpoint")
        self.port = await self._serve(settings.listener, listening)
        for listener, each in self._further_listening.items():
            await self._serve(listener, each)

    async def _serve(self, listener: str, listening: socket.socket) -> int:
        """Accept connections to a listener. Returns its port."""
        server = await accept_one_by_one(
            partial(ServerConnection, self, self._tasks, listener), listening
        )
        self._servers.append(server)
        host, port, *_ = server.sockets[0].getsockname()
        logger.info(
            "serving brokers and clients",
            extra={
                "listener": listener,
                "host": host,
                "port": port,
                "security_protocol": self.settings.security_protocol,
            },
        )
        return int(port)

    def close_connections(self) -> None:
        """Close every connection at once, as when the process has ceased to be the controller."""
        for connection in self.registry:
            connection.end(CloseReason.STOPPED)

    async def stop(self) -> None:
        """Stop listening, let requests in progress be answered for a moment, close everything."""
        self._is_stopping = True
        for server in self._servers:
            await stop_accepting(server)
        for connection in self.registry:
            if not connection.is_busy:
                connection.end(CloseReason.STOPPED)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.settings.limits.stop_s)
        self.close_connections()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self.pass_through is not None:
            self.pass_through.close()
        for server in self._servers:
            await server.wait_closed()
        for decoder in self.decoders.values():
            decoder.shutdown(wait=False, cancel_futures=True)


def _names(names: Mapping[int, str], *, without: Container[int]) -> Mapping[int, str]:
    return {key: name for key, name in names.items() if key not in without}


def _fitting(settings: ServerSettings, *, upstream: int) -> ServerSettings:
    """Settings with no more connections than the process may have open files for.

    Args:
        upstream: Connections to brokers that clients may need.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted, possible = settings.limits.connections, max(soft - _RESERVED_FILES - upstream, 1)
    if soft == resource.RLIM_INFINITY or wanted <= possible:
        return settings
    logger.warning(
        "fewer connections than set: raise the limit of open files",
        extra={"connections": possible, "set": wanted, "open_files": soft},
    )
    limits = msgspec.structs.replace(settings.limits, connections=possible)
    return msgspec.structs.replace(settings, limits=limits)
