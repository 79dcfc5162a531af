"""A client that knows a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.steering.client_world import ClientWorld


@pytest.fixture
async def world() -> AsyncIterator[ClientWorld]:
    """Topic t has two partitions, on brokers 1 and 2."""
    world = ClientWorld()
    world.create_topic("t", (1, 2), (2, 1))
    async with world:
        await world.known()
        yield world
