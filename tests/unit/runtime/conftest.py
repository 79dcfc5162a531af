"""Keepers of a standby's cache over the in-memory ZooKeeper."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.runtime.keeper_worlds import Make, World, worlds


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    async with worlds() as make:
        yield make


@pytest.fixture
async def world(make: Make) -> World:
    """One whose keeper has read everything."""
    world = make()
    world.start()
    await world.current()
    return world
