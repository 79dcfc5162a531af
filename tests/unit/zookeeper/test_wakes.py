"""kazoo's connection thread is woken with a byte for each request, through a socket pair that holds
some 270. Requests that are dropped with a connection leave theirs in it."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from kazoo.protocol.serialization import Create
from kazoo.security import OPEN_ACL_UNSAFE

from regent.zookeeper.generation import BATCH_SIZE, BATCHES_IN_FLIGHT
from regent.zookeeper.kazoo_client import OneSessionClient
from regent.zookeeper.settings import ZooKeeperSettings
from tests.unit.zookeeper.test_kazoo_client import Recorder, Sink

LARGE = b"x" * 200_000
TIMEOUT_S = 60.0


class FrozenServer:
    """Accepts sessions, and reads nothing that follows."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.port = self._listening.getsockname()[1]

    def accept(self) -> socket.socket:
        """Accept one connection and its session."""
        accepted, _ = self._listening.accept()
        (size,) = struct.unpack(">i", accepted.recv(4, socket.MSG_WAITALL))
        accepted.recv(size, socket.MSG_WAITALL)
        answer = struct.pack(">iiqi16s?", 0, 30_000, 1, 16, bytes(16), False)
        accepted.sendall(struct.pack(">i", len(answer)) + answer)
        return accepted

    def close(self) -> None:
        self._listening.close()


class Observer(Recorder):
    """Knows whether there is a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.is_connected = threading.Event()
        self.is_suspended = threading.Event()

    def connected(self, session_id: int) -> None:
        self.is_suspended.clear()
        self.is_connected.set()

    def suspended(self) -> None:
        self.is_connected.clear()
        self.is_suspended.set()


@pytest.fixture
def server() -> Iterator[FrozenServer]:
    started = FrozenServer()
    yield started
    started.close()


@pytest.fixture
def observer() -> Observer:
    return Observer()


@pytest.fixture
def client(server: FrozenServer, observer: Observer) -> Iterator[OneSessionClient]:
    settings = ZooKeeperSettings(
        hosts=(f"127.0.0.1:{server.port}",), session_timeout_ms=30_000, connect_timeout_ms=5_000
    )
    made = OneSessionClient(settings, observer)
    yield made
    made.dispose()


def test_whoever_asks_a_server_that_freezes_again_and_again_is_not_held_up(
    client: OneSessionClient, observer: Observer, server: FrozenServer
) -> None:
    client.start_async()
    for _ in range(3):
        connection = server.accept()
        assert observer.is_connected.wait(TIMEOUT_S)
        asking = threading.Thread(target=_ask, args=(client, Sink(observer)), daemon=True)
        asking.start()
        asking.join(TIMEOUT_S)
        assert not asking.is_alive()
        connection.close()
        assert observer.is_suspended.wait(TIMEOUT_S)
    assert not [each for each in observer.told if each[0] == "answer"]


def _ask(client: OneSessionClient, sink: Sink) -> None:
    """As many requests as Regent has under way at most, and more than a socket takes."""
    for number in range(BATCHES_IN_FLIGHT * BATCH_SIZE):
        request = Create(f"/{number}", LARGE, OPEN_ACL_UNSAFE, 0)
        client._call(request, sink)
