"""A client on a real ZooKeeper, and what it was notified of."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from regent.zk_data.operations import SessionState, WatchedEvent
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings, parse_connect_string
from sandbox.waiting import DEADLINE_S


class Connected:
    """A session with a port on it."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.session = ZooKeeperSession(settings)
        self.events: list[WatchedEvent] = []
        self.states: list[SessionState] = []
        self.port = KazooZooKeeper(self.session, on_watch=self.events.append)
        self.session.subscribe(self.states.append)

    async def state(self, expected: SessionState, *, times: int = 1) -> None:
        """Wait until the session has been in a state so many times."""
        await until(
            lambda: self.states.count(expected) >= times,
            describe=lambda: f"{expected}; saw {self.states}",
        )


def settings_for(
    connect_string: str,
    *,
    session_timeout_ms: int = 60_000,
    connect_timeout_ms: int = 2_000,
    unavailable_after_ms: int | None = None,
) -> ZooKeeperSettings:
    hosts, chroot = parse_connect_string(connect_string)
    return ZooKeeperSettings(
        hosts=hosts,
        chroot=chroot,
        create_chroot=True,
        session_timeout_ms=session_timeout_ms,
        connect_timeout_ms=connect_timeout_ms,
        unavailable_after_ms=unavailable_after_ms,
    )


@contextlib.asynccontextmanager
async def connected(settings: ZooKeeperSettings) -> AsyncIterator[Connected]:
    """A client with a session, closed at the end."""
    client = Connected(settings)
    try:
        await client.session.start(timeout_s=DEADLINE_S)
        yield client
    finally:
        await client.session.close()


async def until(
    condition: Callable[[], bool], *, describe: Callable[[], str] = lambda: "the condition"
) -> None:
    """Wait for something that other threads or processes bring about."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s for {describe()}"
        await asyncio.sleep(0.01)


class Proxy:
    """A TCP proxy in front of a local port, as a network that can fail."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._is_cut = False
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connect_string(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def is_used(self) -> bool:
        """Whether there has been a connection."""
        return bool(self._writers)

    def cut(self) -> None:
        """Close every connection, and accept none until :meth:`restore`."""
        self._is_cut = True
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    def hold(self) -> None:
        """Keep connections open and pass nothing on until :meth:`restore`."""
        self._open.clear()

    def restore(self) -> None:
        self._is_cut = False
        self._open.set()

    async def __aenter__(self) -> Proxy:
        self._open.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.cut()
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.close()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers += (writer, server_writer)
        for source, sink in ((reader, server_writer), (server_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                await self._open.wait()
                sink.write(data)
                await sink.drain()
        sink.close()
