"""Who else than replicas connects to where heartbeats are answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest

from regent.network import replica_server
from regent.network.replica_server import CONNECTIONS_MAX, ReplicaServer
from regent.replicas.messages import Ask, decode_answer, encode
from regent.sockets.listening import BACKLOG, listening_socket
from tests.support.waiting import until

LOCALHOST = "127.0.0.1"
ELSEWHERE = "127.0.0.2"


class Client:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self) -> str:
        """Which instance answers."""
        self.writer.write(encode(Ask("b", is_ready=True)))
        return decode_answer(await self.reader.readline()).instance

    async def closed(self) -> None:
        """Wait until it is closed by the server."""
        with suppress(ConnectionError):
            while await self.reader.read(1024):
                pass


class Served:
    """A server, and clients of it."""

    def __init__(self, stack: AsyncExitStack, port: int) -> None:
        self._stack = stack
        self._port = port

    async def connect(self, address: str = LOCALHOST) -> Client:
        reader, writer = await asyncio.open_connection(
            LOCALHOST, self._port, local_addr=(address, 0)
        )
        self._stack.callback(writer.close)
        return Client(reader, writer)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    with listening_socket(LOCALHOST, 0, setting="replica") as listening:
        server = ReplicaServer("a", listening, tls=None)
        await server.start()
        async with AsyncExitStack() as stack:
            yield Served(stack, listening.getsockname()[1])
        await server.close()


async def test_who_floods_does_not_have_the_connection_of_a_replica_cut(served: Served) -> None:
    """Others would take the leader for gone, and one of them would take over."""
    replica = await served.connect()
    assert await replica.ask() == "a"
    strangers = [await served.connect(ELSEWHERE) for _ in range(2 * CONNECTIONS_MAX)]
    assert await strangers[-1].ask() == "a"  # all before have been admitted
    assert await replica.ask() == "a"


async def test_simultaneous_strangers_few(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would take all files that the process may open."""
    monkeypatch.setattr(replica_server, "SILENCE_MAX_S", 3600)
    many = BACKLOG * 3 // 4
    first = [await served.connect(ELSEWHERE) for _ in range(CONNECTIONS_MAX)]
    assert await first[-1].ask() == "a"  # all have been admitted
    strangers = await asyncio.gather(*(served.connect(ELSEWHERE) for _ in range(many)))
    closed = [asyncio.create_task(stranger.closed()) for stranger in (*first, *strangers)]
    try:
        await until(lambda: sum(task.done() for task in closed) >= many, "as many to be closed")
    finally:
        for task in closed:
            task.cancel()
        await asyncio.gather(*closed, return_exceptions=True)


async def test_strangers_are_logged_once(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            stranger = await served.connect()
            stranger.writer.write(b"GET / HTTP/1.1\r\n")
            await stranger.closed()
    assert [record.message for record in caplog.records] == ["Not a replica of Regent"]
