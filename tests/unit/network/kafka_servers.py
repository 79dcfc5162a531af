"""A server of Kafka's protocol on a socket, and what answers behind it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.server_statistics import CloseReason
from regent.network.server_tls import TlsFiles
from regent.protocol.served_apis import ALTER_PARTITION, CONTROLLED_SHUTDOWN
from regent.protocol.server_codec import Request
from regent.protocol.serving import Close, Dispatcher, Peer
from tests.support.kafka_client import KafkaClient, connected
from tests.support.served_requests import make
from tests.support.waiting import until

NONE_LEFT = {"errorCode": 0, "remainingPartitions": []}
PLENTY = ServerLimits(connection_rate=1e6, request_rate=1e6)


class Controller:
    """Answers ControlledShutdown: what the test has it do with a broker's request."""

    def __init__(self) -> None:
        self.peers: list[Peer] = []
        self.brokers: list[int] = []
        self.in_progress = 0
        self.most_in_progress = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.answers: dict[int, Any] = {}

    async def __call__(self, request: Request, peer: Peer) -> Any | Close:
        broker_id = request.entity.broker_id
        self.peers.append(peer)
        self.brokers.append(broker_id)
        self.in_progress += 1
        self.most_in_progress = max(self.most_in_progress, self.in_progress)
        try:
            await self.may_answer.wait()
        finally:
            self.in_progress -= 1
        answer = self.answers.get(broker_id)
        if isinstance(answer, Exception):
            raise answer
        return answer or make(CONTROLLED_SHUTDOWN.responses[request.header.api_version], NONE_LEFT)


@contextlib.asynccontextmanager
async def serving(
    controller: Dispatcher,
    limits: ServerLimits = PLENTY,
    *,
    tls: TlsFiles | None = None,
    mechanisms: tuple[str, ...] = (),
    **options: Any,
) -> AsyncIterator[KafkaServer]:
    settings = ServerSettings(tls=tls, sasl_mechanisms=mechanisms, limits=limits)
    apis = (CONTROLLED_SHUTDOWN, ALTER_PARTITION)
    server = KafkaServer(settings, apis=apis, dispatcher=controller, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def served(
    controller: Dispatcher,
    limits: ServerLimits = PLENTY,
    *,
    context: ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[tuple[KafkaServer, KafkaClient]]:
    """A server, and a client of it."""
    async with (
        serving(controller, limits, **options) as server,
        connected(server.port, context=context) as client,
    ):
        yield server, client


def limited(**limits: Any) -> ServerLimits:
    return msgspec.structs.replace(PLENTY, **limits)


async def closed_for(server: KafkaServer, reason: CloseReason, count: int = 1) -> None:
    await until(lambda: server.statistics.closed[reason] == count)


def at(server: KafkaServer, **values: int) -> Callable[[], bool]:
    return lambda: all(getattr(server.statistics, key) == value for key, value in values.items())
