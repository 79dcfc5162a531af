"""The life of a session, the same for the real server and the in-memory one."""

from __future__ import annotations

import pytest

from regent.model.errors import SessionExpiredError
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    SessionState,
    SetData,
    WatchedEvent,
    WatchedEventType,
    Written,
)
from tests.contract.zookeeper_worlds import Client, World

CONNECTED, SUSPENDED = SessionState.CONNECTED, SessionState.SUSPENDED
RECONNECTED, EXPIRED = SessionState.RECONNECTED, SessionState.EXPIRED


@pytest.fixture
async def client(world: World) -> Client:
    client = await world.connect()
    await client.port.multi([Create("/guard"), Create("/node")])
    return client


@pytest.fixture
async def other(world: World, client: Client) -> Client:
    return await world.connect()


async def test_sessions_differ(client: Client, other: Client) -> None:
    assert client.states == other.states == [CONNECTED]
    assert client.port.session_id != other.port.session_id


async def test_closing_removes_the_ephemeral_nodes(client: Client, other: Client) -> None:
    await client.port.multi([Create("/e1", ephemeral=True), Create("/e2", ephemeral=True)])
    await client.port.multi([Delete("/e2"), Create("/e2")])
    await client.port.write(
        [Create("/node/e-", ephemeral=True, sequential=True)], guard=Check("/guard", 0)
    )
    await other.port.exists(["/e1", "/e2"], watch=True)
    await other.port.get_children(["/node"], watch=True)
    await client.close()
    assert sorted(await other.settle(), key=lambda e: e.path) == [
        WatchedEvent(WatchedEventType.NODE_DELETED, "/e1"),
        WatchedEvent(WatchedEventType.NODE_CHILDREN_CHANGED, "/node"),
    ]
    assert await other.port.exists(["/e1", "/e2", "/node"]) == [False, True, True]
    assert client.states == [CONNECTED]
    assert client.port.session_id == 0
    with pytest.raises(SessionExpiredError):
        await client.port.get_data(["/node"])


async def test_a_lost_connection_costs_the_watches(client: Client, other: Client) -> None:
    session_id = client.port.session_id
    await client.port.multi([Create("/e", ephemeral=True)])
    await client.port.get_data(["/node"], watch=True)
    await client.port.get_children(["/node"], watch=True)
    await client.port.exists(["/new"], watch=True)
    await client.drop_connection()
    assert client.states == [CONNECTED, SUSPENDED, RECONNECTED]
    assert client.port.session_id == session_id
    await other.port.multi([SetData("/node", b"1"), Create("/new"), Create("/node/child")])
    assert await client.settle() == []
    assert await other.port.exists(["/e"]) == [True]
    await client.port.get_data(["/node"], watch=True)
    await other.port.multi([SetData("/node", b"2")])
    assert await client.settle() == [WatchedEvent(WatchedEventType.NODE_DATA_CHANGED, "/node")]


async def test_an_expired_session_is_replaced(client: Client, other: Client) -> None:
    before = client.port.session_id
    await client.port.multi([Create("/e", ephemeral=True)])
    await client.port.exists(["/e", "/new"], watch=True)
    await other.port.exists(["/e"], watch=True)
    await client.expire()
    assert [state for state in client.states if state is not SUSPENDED] == [
        CONNECTED,
        EXPIRED,
        CONNECTED,
    ]
    assert client.port.session_id not in (0, before)
    assert await other.settle() == [WatchedEvent(WatchedEventType.NODE_DELETED, "/e")]
    await other.port.multi([Create("/new")])
    assert await client.settle() == []
    assert await client.port.multi([Create("/e", ephemeral=True)]) == [Written(0, "/e")]
    (node,) = await other.port.get_data(["/e"])
    assert node is not None
    assert node.ephemeral_owner == client.port.session_id


async def test_nobody_can_use_an_expired_session(client: Client, other: Client) -> None:
    await client.expire()
    await client.expire()
    assert client.states.count(EXPIRED) == 2
    assert await client.port.exists(["/node"]) == [True]
