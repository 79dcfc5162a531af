"""Real servers for the contract suites, one for all tests that need one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from sandbox import ZooKeeper, ZooKeeperEnsemble
from tests.contract.zookeeper_worlds import InMemoryWorld, RealWorld, World
from tests.support.soak import soak


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


@pytest.fixture(scope="package")
def ensemble() -> Iterator[ZooKeeperEnsemble]:
    """A leader and a follower."""
    with ZooKeeperEnsemble(2) as servers:
        yield servers


@pytest.fixture(scope="package")
def observed_ensemble() -> Iterator[ZooKeeperEnsemble]:
    """Two servers with a vote and an observer."""
    with ZooKeeperEnsemble(3, observers=1) as servers:
        yield servers


@pytest.fixture(
    params=[
        "memory",
        *(pytest.param(mode, marks=pytest.mark.integration) for mode in ("standalone", "follower")),
        pytest.param("observer", marks=[pytest.mark.integration, soak("controller")]),
    ]
)
async def any_server(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """The same with a client of each kind of real server."""
    made: World
    if request.param == "memory":
        made = InMemoryWorld()
    elif request.param == "standalone":
        made = RealWorld(request.getfixturevalue("zookeeper_server").connect_string)
    else:
        fixture = "observed_ensemble" if request.param == "observer" else "ensemble"
        servers: ZooKeeperEnsemble = request.getfixturevalue(fixture)
        made = RealWorld(servers.server_with_mode(request.param).connect_string)
    yield made
    await made.close()
