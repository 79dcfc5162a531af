"""A session that outlives an upgrade of its server learns what the server knows now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from regent.model.errors import RecursiveWatchesUnsupportedError
from regent.zk_data.operations import Create, SessionState
from regent.zookeeper import session as session_module
from regent.zookeeper import upgraded_server
from regent.zookeeper.host_lookup import Address
from regent.zookeeper.recursive_watches import RecursiveWatches
from regent.zookeeper.settings import ZooKeeperSettings
from sandbox import ZooKeeper
from tests.integration.zookeeper.harness import connected, settings_for, until

pytestmark = pytest.mark.integration

SUSPENDED, RECONNECTED = SessionState.SUSPENDED, SessionState.RECONNECTED
CONNECTED = SessionState.CONNECTED


@pytest.fixture
def old_server() -> Iterator[ZooKeeper]:
    """ZooKeeper 3.5."""
    with ZooKeeper(version="2.4.1") as server:
        yield server


@pytest.fixture
def _looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "LOOK_AGAIN_PAUSE_S", 0.1)


@pytest.mark.usefixtures("_looks_soon")
async def test_a_server_that_is_upgraded_under_the_session_is_noticed(
    old_server: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older server is asked without harm to the session."""
    asked: list[bool] = []

    async def is_upgraded(server: Address, settings: ZooKeeperSettings) -> bool:
        asked.append(await upgraded_server.is_upgraded(server, settings))
        return asked[-1]

    monkeypatch.setattr(session_module, "is_upgraded", is_upgraded)
    settings = settings_for(old_server.connect_string + "/kafka", session_timeout_ms=60_000)
    async with connected(settings) as client:
        session_id = client.session.session_id
        generation = client.session.generation()
        watches = RecursiveWatches(client.session)
        with pytest.raises(RecursiveWatchesUnsupportedError):
            await watches.add(["/"])
        await asyncio.to_thread(old_server.restart)
        await until(lambda: bool(asked))
        assert not asked[0]
        assert await client.port.exists(["/"]) == [True]
        assert client.states == [CONNECTED, SUSPENDED, RECONNECTED]
        assert not generation.has_bulk_reads

        await asyncio.to_thread(old_server.stop)
        old_server.change_version("3.9.1")
        await asyncio.to_thread(old_server.start)
        await until(lambda: generation.has_bulk_reads)
        await watches.add(["/"])
        await client.port.multi([Create("/node")])
        assert list(watches.take()) == ["/node"]
        assert client.session.session_id == session_id
        assert client.states == [CONNECTED, *[SUSPENDED, RECONNECTED] * 2]


@pytest.mark.usefixtures("_looks_soon")
async def test_a_session_that_has_met_an_older_server_is_not_bound_by_that(
    server: ZooKeeper, chroot: str
) -> None:
    settings = settings_for(server.connect_string + chroot, session_timeout_ms=60_000)
    async with connected(settings) as client:
        generation = client.session.generation()
        generation.has_recursive_watches = False  # what an older server would have answered
        await asyncio.to_thread(server.restart)
        await until(lambda: generation.has_recursive_watches)
        assert generation.has_bulk_reads
        assert client.states == [CONNECTED, SUSPENDED, RECONNECTED]


@pytest.mark.usefixtures("_looks_soon")
async def test_an_older_server_is_asked_without_harm_to_the_session(
    old_server: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    async def is_upgraded(server: Address, settings: ZooKeeperSettings) -> bool:
        asked.append(await upgraded_server.is_upgraded(server, settings))
        return asked[-1]

    monkeypatch.setattr(session_module, "is_upgraded", is_upgraded)
    settings = settings_for(old_server.connect_string, session_timeout_ms=60_000)
    async with connected(settings) as client:
        await asyncio.to_thread(old_server.restart)
        await until(lambda: bool(asked))
        assert asked == [False]
        assert await client.port.exists(["/"]) == [True]
        assert client.states == [CONNECTED, SUSPENDED, RECONNECTED]
        assert not client.session.generation().has_bulk_reads
