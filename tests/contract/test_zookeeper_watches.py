"""One-shot watches, the same for the real server and the in-memory one."""

from __future__ import annotations

import pytest

from regent.zk_data.operations import Check, Create, Delete, SetData, WatchedEvent, WatchedEventType
from tests.contract.zookeeper_worlds import Client, World

CREATED = WatchedEventType.NODE_CREATED
DELETED = WatchedEventType.NODE_DELETED
CHANGED = WatchedEventType.NODE_DATA_CHANGED
CHILD = WatchedEventType.NODE_CHILDREN_CHANGED

GUARD = Check("/guard", 0)


@pytest.fixture
async def client(world: World) -> Client:
    client = await world.connect()
    await client.port.multi([Create("/guard"), Create("/node"), Create("/parent")])
    await client.port.multi([Create("/parent/a")])
    return client


async def test_a_data_watch_reports_one_change(client: Client) -> None:
    await client.port.get_data(["/node"], watch=True)
    assert await client.settle() == []
    await client.port.multi([SetData("/node", b"1")])
    assert await client.settle() == [WatchedEvent(CHANGED, "/node")]
    await client.port.multi([SetData("/node", b"2")])
    assert await client.settle() == []


async def test_reading_without_a_watch_leaves_none_and_takes_none(client: Client) -> None:
    await client.port.get_data(["/node", "/parent"])
    await client.port.get_children(["/parent"])
    await client.port.exists(["/missing"])
    await client.port.multi([SetData("/node", b"1"), Create("/parent/b"), Create("/missing")])
    assert await client.settle() == []
    await client.port.get_data(["/node"], watch=True)
    await client.port.get_data(["/node"])
    await client.port.multi([SetData("/node", b"2")])
    assert await client.settle() == [WatchedEvent(CHANGED, "/node")]


async def test_reading_a_missing_node_leaves_no_watch(client: Client) -> None:
    assert await client.port.get_data(["/missing"], watch=True) == [None]
    assert await client.port.get_children(["/missing"], watch=True) == [None]
    await client.port.multi([Create("/missing")])
    assert await client.settle() == []


async def test_a_transaction_reports_in_the_order_of_its_operations(client: Client) -> None:
    await client.port.exists(["/new"], watch=True)
    await client.port.get_data(["/node", "/parent/a"], watch=True)
    await client.port.get_children(["/", "/parent"], watch=True)
    await client.port.multi(
        [
            SetData("/node", b"1"),
            Create("/new"),
            SetData("/new", b"2"),
            Delete("/parent/a"),
            Create("/other"),
        ]
    )
    assert await client.settle() == [
        WatchedEvent(CHANGED, "/node"),
        WatchedEvent(CREATED, "/new"),
        WatchedEvent(CHILD, "/"),
        WatchedEvent(DELETED, "/parent/a"),
        WatchedEvent(CHILD, "/parent"),
    ]


async def test_every_client_has_its_own_watches(client: Client, world: World) -> None:
    other = await world.connect()
    await client.port.get_data(["/node"], watch=True)
    await other.port.get_data(["/node"], watch=True)
    await other.port.multi([SetData("/node", b"1")])
    assert await client.settle() == [WatchedEvent(CHANGED, "/node")]
    assert await other.settle() == [WatchedEvent(CHANGED, "/node")]
    await client.port.get_data(["/node"], watch=True)
    await other.port.multi([SetData("/node", b"2")])
    assert await client.settle() == [WatchedEvent(CHANGED, "/node")]
    assert await other.settle() == []


async def test_many_watches(client: Client) -> None:
    paths = [f"/parent/n{i:04d}" for i in range(500)]
    await client.port.write([Create(path) for path in paths], guard=GUARD)
    found = await client.port.get_data(paths, watch=True)
    assert all(node is not None for node in found)
    await client.port.write([SetData(path, b"x") for path in paths], guard=GUARD)
    events = await client.settle()
    assert sorted(events, key=lambda e: e.path) == [WatchedEvent(CHANGED, p) for p in paths]
