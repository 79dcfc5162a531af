"""A controller that a server asks, and a client of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from regent.network.kafka_server import KafkaServer
from tests.support.kafka_client import KafkaClient, connected
from tests.unit.network.kafka_servers import Controller


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
async def client(server: KafkaServer) -> AsyncIterator[KafkaClient]:
    async with connected(server.port) as client:
        yield client
