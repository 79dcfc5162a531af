"""What is relied upon of kazoo's private parts. A new kazoo that breaks these breaks the shell."""

from __future__ import annotations

import inspect
import socket
import struct
import threading
from typing import Any
from unittest.mock import patch

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect, Sync
from kazoo.protocol.states import Callback, KeeperState
from kazoo.recipe.lock import Lock

from regent.zookeeper.kazoo_client import OneSessionClient, access_control_list
from regent.zookeeper.receive_buffer import Event
from regent.zookeeper.settings import SaslSettings, ZooKeeperSettings
from tests.support.thread_shortage import thread_shortage

SETTINGS = ZooKeeperSettings(hosts=("a:1", "b:2"), session_timeout_ms=9_000, connect_timeout_ms=500)


class Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.overdue = False

    def attempt_failed(self, reason: str) -> None:
        self.told.append(("attempt failed", reason))

    def handshake_done(self, sent_at: float, granted_timeout_ms: int) -> None:
        self.told.append(("handshake", granted_timeout_ms))

    def is_overdue(self) -> bool:
        return self.overdue

    def has_answered_since(self, moment: float) -> bool:
        return False

    def connected(self, session_id: int) -> None:
        self.told.append(("connected", session_id))

    def suspended(self) -> None:
        self.told.append(("suspended",))

    def ended(self, state: str) -> None:
        self.told.append(("ended", state))


class Sink:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def set(self, value: object, /) -> None:
        self.recorder.told.append(("answer", value))

    def set_exception(self, exception: Exception, /) -> None:
        self.recorder.told.append(("failed", type(exception).__name__))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def client(recorder: Recorder) -> OneSessionClient:
    return OneSessionClient(SETTINGS, recorder)


def message(event: Event) -> bytes:
    """As a server sends it."""
    return struct.pack(">iiqi", 16 + len(event.as_body()), -1, -1, 0) + event.as_body()


def connect(client: OneSessionClient, session_id: int = 7) -> None:
    """What kazoo's connection thread does after a handshake."""
    client._session_id = session_id
    client._session_callback(KeeperState.CONNECTED)


def test_the_parts_that_are_overridden_exist() -> None:
    handler: Any = ConnectionHandler
    for function, parameters in (
        (KazooClient._session_callback, "self state"),
        (SequentialThreadingHandler.dispatch_callback, "self callback"),
        (handler._invoke, "self timeout request xid"),
        (handler._read, "self length timeout"),
        (handler._read_socket, "self read_timeout"),
        (handler._read_watch_event, "self buffer offset"),
        (handler._expand_client_hosts, "self"),
        (handler._connect, "self host hostip port"),
    ):
        assert " ".join(inspect.signature(function).parameters) == parameters
    source = inspect.getsource(ConnectionHandler)
    for relied_upon in (
        "self.handler.create_connection(",
        "self.handler.select(",
        "self._invoke(",
        "self._read(4, timeout)",
        "self._read_socket(read_timeout)",
        "self._read_watch_event(buffer, offset)",
        "host_ports = self._expand_client_hosts()",
        "hostname=host,",
        "client._child_watchers.pop(path, [])",
        "self.client._stopped.is_set()",
        "client._queue[0]",
        "client.last_zxid,",
        "if connect_result.time_out <= 0:",
    ):
        assert relied_upon in source
    assert "self._retry.copy()" in inspect.getsource(Lock.acquire)
    assert isinstance(KazooClient()._connection, ConnectionHandler)


def test_a_session_is_observed(client: OneSessionClient, recorder: Recorder) -> None:
    client._session_callback(KeeperState.CONNECTING)
    connect(client)
    client._session_callback(KeeperState.CONNECTING)
    connect(client)
    client._session_callback(KeeperState.EXPIRED_SESSION)
    assert recorder.told == [
        ("connected", 7),
        ("suspended",),
        ("connected", 7),
        ("ended", KeeperState.EXPIRED_SESSION),
    ]


@pytest.mark.parametrize(
    "state", [KeeperState.EXPIRED_SESSION, KeeperState.AUTH_FAILED, KeeperState.CLOSED]
)
def test_the_client_ends_with_its_session(client: OneSessionClient, state: str) -> None:
    connect(client)
    client._stopped.clear()
    client._session_callback(state)
    assert client._stopped.is_set()


def test_loss_is_told_before_requests_fail(client: OneSessionClient, recorder: Recorder) -> None:
    client._session_callback(KeeperState.CONNECTING)
    connect(client)
    client._queue.append((Sync("/"), Sink(recorder)))
    client._session_callback(KeeperState.CONNECTING)
    assert recorder.told[1:] == [("suspended",), ("failed", "ConnectionLoss")]


def test_closed_client_fails_requests(client: OneSessionClient, recorder: Recorder) -> None:
    client._call(Sync("/"), Sink(recorder))
    assert recorder.told == [("failed", "ConnectionClosedError")]


def test_watch_callbacks_run_at_once(client: OneSessionClient) -> None:
    heard: list[int] = []
    client.handler.dispatch_callback(Callback("watch", heard.append, (1,)))
    assert heard == [1]


def test_connecting_is_bounded(client: OneSessionClient) -> None:
    bounds: list[object] = []

    def connect(self: SequentialThreadingHandler, *args: object, **kwargs: object) -> socket.socket:
        bounds.append(kwargs["timeout"])
        raise TimeoutError

    with patch.object(SequentialThreadingHandler, "create_connection", connect):
        for asked in ({"timeout": 9.0}, {"timeout": 0.2}, {}):
            with pytest.raises(TimeoutError):
                client.handler.create_connection(address=("a", 1), hostname="zk", **asked)
    assert bounds == [0.5, 0.2, 0.5]


def test_unreached_server_is_named(client: OneSessionClient, recorder: Recorder) -> None:
    connection: Any = client._connection
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionDropped):
        connection._connect("localhost", "127.0.0.1", port)
    with socket.create_server(("127.0.0.1", 0)) as server:
        other_port = server.getsockname()[1]
        hanging_up = threading.Thread(target=lambda: server.accept()[0].close())
        hanging_up.start()
        with pytest.raises(ConnectionDropped):  # as a server does that has no quorum
            connection._connect("localhost", "127.0.0.1", other_port)
        connection._socket.close()
        hanging_up.join()
    (_, refused), (_, broken) = recorder.told
    assert str(refused).startswith(f"no connection to localhost:{port}: ")
    assert str(broken).startswith(f"localhost:{other_port} gave no answer to the session request: ")
    assert "it may have no quorum, or expect TLS" in str(broken)


def test_unresolved_hosts_are_reported_and_others_tried(recorder: Recorder) -> None:
    """DNS has no such labels: Python raises another error than for a host that is not found."""
    settings = ZooKeeperSettings(
        hosts=("zk..svc:1", "localhost:2", f"{64 * 'z'}.svc:3"), connect_timeout_ms=500
    )
    connection: Any = OneSessionClient(settings, recorder)._connection
    servers = connection._expand_client_hosts()
    assert {(host, port) for host, _, port in servers} == {("localhost", 2)}
    assert [str(reason).partition(" cannot be resolved: ")[0] for _, reason in recorder.told] == [
        "the host 'zk..svc'",
        f"the host '{64 * 'z'}.svc'",
    ]


def test_the_handshake_is_bounded_and_told(client: OneSessionClient, recorder: Recorder) -> None:
    bounds: list[float] = []

    def answer(
        self: ConnectionHandler, timeout: float, request: object, xid: int | None = None
    ) -> tuple[object, int | None]:
        bounds.append(timeout)
        return Connect(0, 0, 4_000, 7, b"", False), None

    request = Connect(0, 0, 9_000, 0, b"", False)
    with patch.object(ConnectionHandler, "_invoke", answer):
        client._connection._invoke(4.5, request)
        client._connection._invoke(0.2, request)
    assert bounds == [0.5, 0.2]
    assert recorder.told == [("handshake", 4_000)] * 2


@pytest.mark.parametrize(
    ("overdue", "known_zxid", "asked_as", "granted"),
    [
        (False, 5, [("Connect", 9)], 4_000),
        (True, 9, [("Connect", 0), ("Ping", None)], 4_000),
        (True, None, [("Connect", 0), ("Ping", None)], 4_000),
        (True, 8, [("Connect", 0), ("Ping", None)], 0),
    ],
)
def test_a_session_ends_where_servers_have_lost_what_it_has_seen(
    client: OneSessionClient,
    recorder: Recorder,
    overdue: bool,
    known_zxid: int | None,
    asked_as: list[tuple[str, int | None]],
    granted: int,
) -> None:
    """A server refuses whoever has seen more than it has; kazoo would ask it for ever."""
    asked: list[tuple[str, int | None]] = []

    def answer(
        self: ConnectionHandler, timeout: float, request: object, xid: int | None = None
    ) -> object:
        asked.append((type(request).__name__, getattr(request, "last_zxid_seen", None)))
        if isinstance(request, Connect):
            return Connect(0, 0, 4_000, 7, b"", False), None
        return known_zxid

    client.last_zxid = 9
    recorder.overdue = overdue
    with patch.object(ConnectionHandler, "_invoke", answer):
        accepted, _ = client._connection._invoke(4.5, Connect(0, 9, 9_000, 7, b"", False))
    assert asked == asked_as
    assert accepted.time_out == granted
    assert recorder.told == ([("handshake", 4_000)] if granted else [])


def test_settings_reach_kazoo() -> None:
    settings = ZooKeeperSettings(
        hosts=("a:1", "[::1]:2"),
        session_timeout_ms=9_000,
        set_acl=True,
        sasl=SaslSettings(username="u", password="p"),
    )
    client = OneSessionClient(settings, Recorder())
    assert client.hosts == [("a", 1), ("::1", 2)]
    assert client._session_timeout == 9_000
    for attribute, expected in {
        "randomize_hosts": True,
        "default_acl": access_control_list(settings),
    }.items():
        assert getattr(client, attribute) == expected
    assert client._connection.sasl_options == {
        "mechanism": "DIGEST-MD5",
        "service": "zookeeper",
        "username": "u",
        "password": "p",
    }


def test_access_control_lists() -> None:
    everyone = access_control_list(ZooKeeperSettings(hosts=("h:1",)))
    assert [(acl.perms, acl.id.scheme) for acl in everyone] == [(31, "world")]
    secure = access_control_list(ZooKeeperSettings(hosts=("h:1",), set_acl=True))
    assert [(acl.perms, acl.id.scheme) for acl in secure] == [(31, "auth"), (1, "world")]


def test_waiting_for_sockets(client: OneSessionClient) -> None:
    one, other = socket.socketpair()
    with one, other:
        wait = client.handler.select
        assert wait([one, other], [], [], 0) == ([], [], [])
        assert wait([], [one, other], [], 0) == ([], [one, other], [])
        assert wait([one], [other], [], None) == ([], [other], [])
        one.send(b"x")
        assert wait([one, other], [], [], None) == ([other], [], [])
        one.close()
        assert wait([other], [], [], 5) == ([other], [], [])


def test_events_that_arrive_together_are_all_reported_at_once(client: OneSessionClient) -> None:
    """Those of one-shot watches, too, and in the order in which they come."""
    heard: list[object] = []
    client._stopped.clear()
    client.on_event = heard.append
    client._data_watchers["/b"].add(lambda event: heard.append((event.type, event.path)))
    events = [Event(1, "/a"), Event(3, "/b"), Event(3, "/b"), Event(2, "/c")]
    connection = client._connection
    one, other = socket.socketpair()
    with one, other:
        connection._socket = other
        one.sendall(b"".join(map(message, events)))
        connection._read_socket(5.0)
    assert heard == [*events[:2], ("CHANGED", "/b"), *events[2:]]


def test_what_is_buffered_makes_its_socket_readable(client: OneSessionClient) -> None:
    connection, wait = client._connection, client.handler.select
    one, other = socket.socketpair()
    waker, wakened = socket.socketpair()
    with one, other, waker, wakened:
        connection._socket = other
        one.sendall(b"abc")
        assert connection._read(1, 5.0) == b"a"
        assert wait([other, wakened], [], [], None) == ([other], [], [])
        waker.send(b"x")
        assert wait([other, wakened], [], [], None) == ([other, wakened], [], [])
        assert connection._read(2, 5.0) == b"bc"
        assert wait([other, wakened], [], [], None) == ([wakened], [], [])


def test_the_rest_of_a_message_is_waited_for(client: OneSessionClient) -> None:
    """The part of it that is here must not make the socket look readable."""
    connection = client._connection
    one, other = socket.socketpair()
    with one, other:
        other.setblocking(False)
        connection._socket = other
        one.sendall(b"abc")
        assert connection._read(1, 5.0) == b"a"
        sending = threading.Timer(0.05, one.sendall, (b"def",))
        sending.start()
        assert connection._read(4, 60.0) == b"bcde"
        sending.join()


def test_a_closed_connection_and_silence_end_a_read(client: OneSessionClient) -> None:
    one, other = socket.socketpair()
    with other:
        client._connection._socket = other
        with pytest.raises(KazooTimeoutError):
            client._connection._read(1, 0.0)
        one.close()
        with pytest.raises(ConnectionDropped):
            client._connection._read(1, 5.0)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_client_short_of_threads_leaves_none(client: OneSessionClient, left: int) -> None:
    """It is started with two of the handler's and that of the connection."""
    before = set(threading.enumerate())
    with thread_shortage(left=left), pytest.raises(RuntimeError, match="can't start new thread"):
        client.start_async()
    client.dispose()
    assert set(threading.enumerate()) <= before
