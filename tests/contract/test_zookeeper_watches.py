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


async def test_a_new_read_sets_the_watch_anew(client: Client) -> None:
    for value in (b"1", b"2", b"3"):
        await client.port.get_data(["/node"], watch=True)
        await client.port.multi([SetData("/node", value)])
        assert await client.settle() == [WatchedEvent(CHANGED, "/node")]


async def test_reading_twice_reports_once(client: Client) -> None:
    await client.port.get_data(["/node", "/node"], watch=True)
    await client.port.get_data(["/node"], watch=True)
    await client.port.exists(["/node"], watch=True)
    await client.port.multi([SetData("/node", b"1")])
    assert await client.settle() == [WatchedEvent(CHANGED, "/node")]


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


async def test_a_data_watch_reports_the_deletion(client: Client) -> None:
    await client.port.get_data(["/node"], watch=True)
    await client.port.multi([Delete("/node")])
    assert await client.settle() == [WatchedEvent(DELETED, "/node")]
    await client.port.multi([Create("/node")])
    assert await client.settle() == []


async def test_reading_a_missing_node_leaves_no_watch(client: Client) -> None:
    assert await client.port.get_data(["/missing"], watch=True) == [None]
    assert await client.port.get_children(["/missing"], watch=True) == [None]
    await client.port.multi([Create("/missing")])
    assert await client.settle() == []


async def test_existence_reports_creation_change_and_deletion(client: Client) -> None:
    assert await client.port.exists(["/new"], watch=True) == [False]
    await client.port.multi([Create("/new")])
    assert await client.settle() == [WatchedEvent(CREATED, "/new")]
    assert await client.port.exists(["/new"], watch=True) == [True]
    await client.port.multi([SetData("/new", b"1")])
    assert await client.settle() == [WatchedEvent(CHANGED, "/new")]
    await client.port.exists(["/new"], watch=True)
    await client.port.multi([Delete("/new")])
    assert await client.settle() == [WatchedEvent(DELETED, "/new")]
    assert await client.port.exists(["/new"], watch=True) == [False]
    await client.port.multi([Create("/new")])
    assert await client.settle() == [WatchedEvent(CREATED, "/new")]


async def test_a_child_watch_reports_birth_and_death_of_children(client: Client) -> None:
    await client.port.get_children(["/parent"], watch=True)
    await client.port.multi([Create("/parent/b")])
    assert await client.settle() == [WatchedEvent(CHILD, "/parent")]
    await client.port.get_children(["/parent"], watch=True)
    await client.port.multi([Delete("/parent/a")])
    assert await client.settle() == [WatchedEvent(CHILD, "/parent")]
    await client.port.multi([Delete("/parent/b")])
    assert await client.settle() == []


async def test_a_child_watch_reports_nothing_else(client: Client) -> None:
    await client.port.get_children(["/parent"], watch=True)
    await client.port.multi([SetData("/parent", b"1"), SetData("/parent/a", b"1")])
    await client.port.multi([Create("/parent/a/grandchild")])
    assert await client.settle() == []
    await client.port.multi([Delete("/parent/a/grandchild")])
    await client.port.multi([Delete("/parent/a")])
    assert await client.settle() == [WatchedEvent(CHILD, "/parent")]


async def test_a_child_watch_reports_the_deletion_of_its_own_node(client: Client) -> None:
    await client.port.get_children(["/node"], watch=True)
    await client.port.multi([Delete("/node")])
    assert await client.settle() == [WatchedEvent(DELETED, "/node")]


async def test_a_deletion_is_reported_once_for_both_watches(client: Client) -> None:
    await client.port.get_children(["/node", "/"], watch=True)
    await client.port.get_data(["/node"], watch=True)
    await client.port.multi([Delete("/node")])
    assert await client.settle() == [WatchedEvent(DELETED, "/node"), WatchedEvent(CHILD, "/")]
    await client.port.multi([Create("/node"), Delete("/node")])
    assert await client.settle() == []


async def test_a_data_watch_outlives_changes_of_the_children(client: Client) -> None:
    await client.port.get_data(["/parent"], watch=True)
    await client.port.multi([Create("/parent/b")])
    assert await client.settle() == []
    await client.port.multi([SetData("/parent", b"1")])
    assert await client.settle() == [WatchedEvent(CHANGED, "/parent")]


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


async def test_a_failed_transaction_reports_nothing(client: Client) -> None:
    await client.port.get_data(["/node"], watch=True)
    await client.port.get_children(["/parent"], watch=True)
    await client.port.multi([SetData("/node", b"1"), Create("/parent/b"), Delete("/missing")])
    assert await client.settle() == []


async def test_guarded_writes_report_too(client: Client) -> None:
    await client.port.get_data(["/node", "/guard"], watch=True)
    await client.port.write([SetData("/node", b"1")], guard=GUARD)
    assert await client.settle() == [WatchedEvent(CHANGED, "/node")]


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
