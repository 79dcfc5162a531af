"""Persistent recursive watches, the same for every kind of real server and the in-memory one."""

from __future__ import annotations

import pytest

from regent.model.errors import RecursiveWatchesUnsupportedError
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    WatchedEvent,
    WatchedEventType,
)
from sandbox import ZooKeeper
from tests.contract.zookeeper_worlds import Client, RealWorld, World

CREATED = WatchedEventType.NODE_CREATED
DELETED = WatchedEventType.NODE_DELETED
CHANGED = WatchedEventType.NODE_DATA_CHANGED
CHILD = WatchedEventType.NODE_CHILDREN_CHANGED


@pytest.fixture
async def client(any_server: World) -> Client:
    """A client that watches everything at and below ``/brokers``."""
    client = await any_server.connect()
    await client.port.multi([Create("/brokers"), Create("/brokers/ids"), Create("/other")])
    await client.recursive.add(["/brokers"])
    return client


async def touched(client: Client) -> dict[str, WatchedEventType]:
    """What was reported by the time at which a read is answered."""
    await client.port.get_data(["/"])
    return dict(client.recursive.take())


async def change(client: Client, *operations: Operation) -> dict[str, WatchedEventType]:
    await client.port.multi(operations)
    return dict(client.recursive.take())


async def test_what_happens_below_is_reported_again_and_again(client: Client) -> None:
    assert await change(client, Create("/brokers/ids/1")) == {"/brokers/ids/1": CREATED}
    for data in (b"1", b"2"):
        assert await change(client, SetData("/brokers/ids/1", data)) == {"/brokers/ids/1": CHANGED}
    assert await change(client, Delete("/brokers/ids/1")) == {"/brokers/ids/1": DELETED}
    assert await change(client, Create("/brokers/ids/1")) == {"/brokers/ids/1": CREATED}


async def test_the_answer_to_a_write_comes_after_what_it_has_changed(client: Client) -> None:
    """So does that to a read, and every change before: what a cache relies on."""
    paths = [f"/brokers/ids/{i}" for i in range(1_200)]
    for start in range(0, len(paths), 300):
        await client.port.multi([Create(path) for path in paths[start : start + 300]])
    await client.port.write([SetData(path, b"x") for path in paths], guard=Check("/", -1))
    assert client.recursive.take() == dict.fromkeys(paths, CHANGED)


async def test_nodes_below_new_nodes_are_reported(client: Client) -> None:
    created = ["/brokers/a", "/brokers/a/b", "/brokers/a/b/c"]
    assert await change(client, *map(Create, created)) == dict.fromkeys(created, CREATED)


async def test_the_node_itself_is_reported_and_need_not_exist(client: Client) -> None:
    assert await change(client, SetData("/brokers", b"1")) == {"/brokers": CHANGED}
    await client.recursive.add(["/missing"])
    created = ["/missing", "/missing/child"]
    assert await change(client, *map(Create, created)) == dict.fromkeys(created, CREATED)
    assert await change(client, *map(Delete, reversed(created))) == dict.fromkeys(created, DELETED)


async def test_nothing_else_is_reported(client: Client) -> None:
    await client.port.multi(
        [Create("/brokers-2"), Create("/other/brokers"), SetData("/other", b"1"), Create("/b")]
    )
    await client.port.multi([SetData("/brokers", b"1"), Delete("/missing")])
    assert await touched(client) == {}


async def test_the_last_event_of_a_node_counts(client: Client) -> None:
    await client.port.multi([Create("/brokers/x"), SetData("/brokers/ids", b"1")])
    await client.port.multi([SetData("/brokers/x", b"1"), Delete("/brokers/x")])
    assert list((await touched(client)).items()) == [
        ("/brokers/x", DELETED),
        ("/brokers/ids", CHANGED),
    ]


async def test_other_clients_changes_are_reported(client: Client, any_server: World) -> None:
    other = await any_server.connect()
    await other.port.multi([Create("/brokers/e", ephemeral=True)])
    assert await touched(client) == {"/brokers/e": CREATED}
    await other.close()
    assert await touched(client) == {"/brokers/e": DELETED}


async def test_one_shot_watches_below_report_as_ever(client: Client) -> None:
    await client.port.get_children(["/brokers/ids"], watch=True)
    await client.port.exists(["/brokers/ids/1"], watch=True)
    assert await change(client, Create("/brokers/ids/1")) == {"/brokers/ids/1": CREATED}
    assert await client.settle() == [
        WatchedEvent(CREATED, "/brokers/ids/1"),
        WatchedEvent(CHILD, "/brokers/ids"),
    ]
    await client.port.get_data(["/brokers/ids/1"], watch=True)
    for data in (b"1", b"2"):
        assert await change(client, SetData("/brokers/ids/1", data)) == {"/brokers/ids/1": CHANGED}
    assert await client.settle() == [WatchedEvent(CHANGED, "/brokers/ids/1")]


async def test_watching_twice_reports_once_and_is_removed_at_once(client: Client) -> None:
    await client.recursive.add(["/brokers"])
    assert await change(client, Create("/brokers/x")) == {"/brokers/x": CREATED}
    await client.recursive.remove(["/brokers"])
    assert await change(client, SetData("/brokers/x", b"1")) == {}


async def test_a_removed_watch_reports_no_more(client: Client) -> None:
    await client.recursive.add(["/other"])
    await client.recursive.remove(["/brokers"])
    assert await change(client, Create("/brokers/x"), Create("/other/x")) == {"/other/x": CREATED}
    await client.recursive.remove(["/brokers"])
    await client.drop_connection()
    await client.recursive.restore()
    assert await change(client, Delete("/brokers/x"), Delete("/other/x")) == {"/other/x": DELETED}


async def test_lost_connection_costs_the_watches(client: Client, any_server: World) -> None:
    other = await any_server.connect()
    await client.drop_connection()
    await other.port.multi([Create("/brokers/missed")])
    assert await touched(client) == {}
    await client.recursive.restore()
    assert await touched(client) == {}, "nothing is reported of what was missed"
    await other.port.multi([Create("/brokers/seen")])
    assert await touched(client) == {"/brokers/seen": CREATED}


async def test_a_new_session_needs_them_restored(client: Client) -> None:
    await client.expire()
    assert await change(client, Create("/brokers/missed")) == {}
    await client.recursive.restore()
    assert await change(client, Create("/brokers/seen")) == {"/brokers/seen": CREATED}


async def test_removing_what_a_lost_connection_has_taken_is_no_error(client: Client) -> None:
    await client.drop_connection()
    await client.recursive.remove(["/brokers"])
    await client.recursive.restore()
    assert await change(client, Create("/brokers/x")) == {}


async def test_the_listener_is_called_once_until_the_events_are_taken(client: Client) -> None:
    calls: list[int] = []
    client.recursive.listen(lambda: calls.append(len(client.recursive.take())))
    await client.port.multi([Create("/brokers/x"), Create("/brokers/y")])
    await touched(client)
    assert sum(calls) == 2
    await change(client, SetData("/brokers/x", b"1"))
    await touched(client)
    assert sum(calls) == 3


async def test_the_whole_tree_can_be_watched(any_server: World) -> None:
    client = await any_server.connect()
    await client.recursive.add(["/"])
    assert await change(client, Create("/x"), Create("/x/y")) == {"/x": CREATED, "/x/y": CREATED}


@pytest.mark.integration
@pytest.mark.parametrize("version", ["2.4.1", "1.1.1"])
async def test_servers_before_3_6_are_told_apart(version: str) -> None:
    """ZooKeeper 3.5 and 3.4. The connection stays."""
    with ZooKeeper(version=version) as server:
        world = RealWorld(server.connect_string)
        client = await world.connect()
        before = list(client.states)
        for attempt in (client.recursive.add, client.recursive.remove):
            with pytest.raises(RecursiveWatchesUnsupportedError):
                await attempt(["/brokers"])
        with pytest.raises(RecursiveWatchesUnsupportedError):
            await client.recursive.restore()
        assert await client.port.exists(["/"]) == [True]
        assert client.states == before
        await world.close()
