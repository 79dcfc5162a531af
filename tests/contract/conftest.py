"""Real servers for the contract suites, one for all tests that need one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from sandbox import ZooKeeper
from tests.contract.zookeeper_worlds import InMemoryWorld, RealWorld, World


@pytest.fixture(scope="package")
def zookeeper_server() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A ZooKeeper of the test's own; every test runs against the in-memory and the real one."""
    made: World
    if request.param == "memory":
        made = InMemoryWorld()
    else:
        server: ZooKeeper = request.getfixturevalue("zookeeper_server")
        made = RealWorld(server.connect_string)
    yield made
    await made.close()
