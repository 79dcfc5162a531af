"""A client of the API, and the small server that it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from regent.kube.client import KubeClient
from tests.unit.kube.small_server import Credentials, Server, serving


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    fake = Server()
    async with serving(fake) as fake.url:
        yield fake


@pytest.fixture
def credentials(server: Server) -> Credentials:
    return Credentials(server)


@pytest.fixture
async def client(credentials: Credentials) -> AsyncIterator[KubeClient]:
    async with KubeClient(max_connections=4, request_timeout_s=60, credentials=credentials) as made:
        yield made
