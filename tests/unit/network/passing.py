"""A server that passes requests on to raw brokers, over real sockets."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any

from regent.network.kafka_server import KafkaServer
from regent.network.pass_through import PassThrough
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN, DESCRIBE_CONFIGS
from regent.protocol.server_codec import Request
from regent.protocol.serving import Close, PassOn, Peer
from tests.support.kafka_client import KafkaClient, connected
from tests.support.raw_broker import RawBroker, nowhere, raw_brokers
from tests.support.served_requests import make
from tests.unit.network.kafka_servers import NONE_LEFT, PLENTY


class Controller:
    """Answers ControlledShutdown itself, and has a broker answer DescribeConfigs."""

    async def __call__(self, request: Request, _: Peer) -> Any | Close | PassOn:
        if request.header.api_key == DESCRIBE_CONFIGS.key:
            return PassOn()
        return make(CONTROLLED_SHUTDOWN.responses[request.header.api_version], NONE_LEFT)


class Passing:
    """A server in front of raw brokers."""

    def __init__(self, brokers: Sequence[RawBroker], **settings: Any) -> None:
        self.brokers = brokers
        self.listed = [broker.as_upstream() for broker in brokers]
        self.lagging: list[int] = []
        self.pass_through = PassThrough(
            UpstreamSettings(**settings),
            brokers=lambda: self.listed,
            depends_on_address=nowhere,
            lagging=lambda: self.lagging,
        )
        self.server: KafkaServer

    @contextlib.asynccontextmanager
    async def serving(
        self, limits: ServerLimits = PLENTY, **options: Any
    ) -> AsyncIterator[KafkaServer]:
        self.server = KafkaServer(
            ServerSettings(limits=limits),
            apis=(CONTROLLED_SHUTDOWN, DESCRIBE_CONFIGS),
            dispatcher=Controller(),
            pass_through=self.pass_through,
            **options,
        )
        await self.server.start()
        try:
            yield self.server
        finally:
            await self.server.stop()


@contextlib.asynccontextmanager
async def passing(
    *releases: tuple[int, int], limits: ServerLimits = PLENTY, **settings: Any
) -> AsyncIterator[Passing]:
    async with raw_brokers(*releases or ((3, 9),)) as brokers:
        passing = Passing(brokers, **settings)
        async with passing.serving(limits):
            yield passing


@contextlib.asynccontextmanager
async def one_broker(**options: Any) -> AsyncIterator[tuple[Passing, RawBroker, KafkaClient]]:
    async with passing(**options) as passed, connected(passed.server.port) as client:
        yield passed, passed.brokers[0], client


def frame_of(api_key: int, version: int, correlation_id: int, body: bytes = b"body") -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, 4) + b"test" + body


async def ask(client: KafkaClient, frame: bytes) -> bytes:
    client.send_frame(frame)
    return await client.frame()
