"""What the in-memory ZooKeeper offers beyond the port: inspection, hooks, faults."""

from __future__ import annotations

import pytest

from regent.model.errors import (
    SessionExpiredError,
    ZooKeeperUnavailableError,
)
from regent.simulation.zookeeper import AppliedTransaction, InMemoryZooKeeper
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    SessionState,
    SetData,
    WatchedEvent,
    WatchedEventType,
    Written,
    ZNode,
)

CONNECTED, SUSPENDED = SessionState.CONNECTED, SessionState.SUSPENDED
RECONNECTED = SessionState.RECONNECTED


@pytest.fixture
def server() -> InMemoryZooKeeper:
    return InMemoryZooKeeper()


def test_the_tree_can_be_inspected(server: InMemoryZooKeeper) -> None:
    client = server.connect()
    client.multi([Create("/b"), Create("/a", b"1"), Create("/a/x"), Create("/a-b")])
    first = server.zxid
    client.multi([SetData("/a", b"2")])
    assert server.dump() == {
        "/a": ZNode(b"2", 1, first, first + 1),
        "/a/x": ZNode(b"", 0, first, first),
        "/a-b": ZNode(b"", 0, first, first),
        "/b": ZNode(b"", 0, first, first),
    }
    assert list(server.dump()) == ["/a", "/a/x", "/a-b", "/b"]
    assert server.get("/missing") is None
    assert server.children("/") == ("a", "a-b", "b")
    assert server.children("/missing") == ()


def test_a_chroot_hides_the_rest(server: InMemoryZooKeeper) -> None:
    client = server.connect(chroot="/kafka/one")
    created = client.multi([Create("/a"), Create("/a/s-", sequential=True)])
    assert created == [Written(0, "/a"), Written(0, "/a/s-0000000000")]
    client.get_children(["/", "/a"], watch=True)
    other = server.connect()
    other.multi([Create("/kafka/one/b"), Create("/kafka/onetwo"), Create("/kafka/one/a/c")])
    assert client.take_events() == [
        CONNECTED,
        WatchedEvent(WatchedEventType.NODE_CHILDREN_CHANGED, "/"),
        WatchedEvent(WatchedEventType.NODE_CHILDREN_CHANGED, "/a"),
    ]
    assert list(server.dump()) == [
        *("/kafka", "/kafka/one", "/kafka/one/a", "/kafka/one/a/c"),
        *("/kafka/one/a/s-0000000000", "/kafka/one/b", "/kafka/onetwo"),
    ]


def test_hooks_see_every_transaction_that_changes_something(server: InMemoryZooKeeper) -> None:
    seen: list[AppliedTransaction] = []
    server.on_transaction(seen.append)
    client = server.connect(chroot="/c")
    client.multi([Create("/a", b"1", ephemeral=True), Create("/s-", sequential=True)])
    zxid = server.zxid
    client.multi([Check("/a", 0)])
    client.multi([SetData("/a", b"2"), Delete("/missing")])
    client.write([SetData("/a", b"3"), Delete("/missing")], guard=Check("/a", -1))
    session_id = client.session_id
    client.close()
    assert seen == [
        AppliedTransaction(session_id, (Create("/c"),), 2),
        AppliedTransaction(
            session_id,
            (Create("/c/a", b"1", ephemeral=True), Create("/c/s-0000000001")),
            zxid,
        ),
        AppliedTransaction(session_id, (Check("/c/a", -1), SetData("/c/a", b"3")), zxid + 3),
        AppliedTransaction(session_id, (Delete("/c/a"),), zxid + 5),
    ]


def test_a_hook_runs_before_anyone_is_told(server: InMemoryZooKeeper) -> None:
    client = server.connect()
    client.take_events()
    client.get_children(["/"], watch=True)
    waiting: list[int] = []
    server.on_transaction(lambda _: waiting.append(len(client.events)))
    client.multi([Create("/a")])
    assert waiting == [0]
    assert len(client.events) == 1


def test_without_a_connection_nothing_goes(server: InMemoryZooKeeper) -> None:
    client = server.connect()
    client.multi([Create("/e", ephemeral=True)])
    client.get_data(["/e"], watch=True)
    client.disconnect()
    client.disconnect()
    for call in (
        lambda: client.get_data(["/e"]),
        lambda: client.get_children(["/e"]),
        lambda: client.exists(["/e"]),
        lambda: client.multi([SetData("/e", b"")]),
        lambda: client.write([SetData("/e", b"")], guard=Check("/e", 0)),
    ):
        with pytest.raises(ZooKeeperUnavailableError):
            call()
    server.connect().multi([SetData("/e", b"1")])
    client.reconnect()
    client.reconnect()
    assert client.take_events() == [CONNECTED, SUSPENDED, RECONNECTED]
    assert client.get_data(["/e"]) != [None]


def test_a_closed_client_stays_closed(server: InMemoryZooKeeper) -> None:
    client = server.connect()
    client.close()
    client.close()
    client.reconnect()
    with pytest.raises(SessionExpiredError):
        client.get_data(["/"])


def test_events_before_a_disconnection_are_still_delivered(server: InMemoryZooKeeper) -> None:
    client = server.connect()
    client.get_children(["/"], watch=True)
    client.multi([Create("/a")])
    client.disconnect()
    assert client.take_events() == [
        CONNECTED,
        WatchedEvent(WatchedEventType.NODE_CHILDREN_CHANGED, "/"),
        SUSPENDED,
    ]
    assert client.take_events() == []


def test_listeners_hear_at_once_what_waits_in_the_queue(server: InMemoryZooKeeper) -> None:
    client = server.connect()
    heard: list[object] = []
    client.on_event(heard.append)
    client.exists(["/a"], watch=True)
    client.multi([Create("/a")])
    client.disconnect()
    assert heard == [WatchedEvent(WatchedEventType.NODE_CREATED, "/a"), SUSPENDED]
