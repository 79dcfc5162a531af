"""Two ZooKeepers behind one set of handles: a real server through kazoo, and the in-memory one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Protocol

from kazoo.protocol.connection import _CONNECTION_DROP

from regent.runtime.ports import RecursiveWatchesPort, ZooKeeperPort
from regent.simulation.zookeeper import InMemoryClient, InMemoryZooKeeper
from regent.zk_data.operations import SessionState, WatchedEvent
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.recursive_watches import RecursiveWatches
from regent.zookeeper.session import ZooKeeperSession
from sandbox.waiting import DEADLINE_S
from sandbox.znodes import end_session
from tests.integration.zookeeper.harness import settings_for, until
from tests.simulation.zookeeper_ports import InMemoryRecursiveWatches, InMemoryZooKeeperPort
from tests.support.present import present

SESSION_TIMEOUT_MS = 30_000


class Client(Protocol):
    """A client and what it was notified of."""

    events: list[WatchedEvent]
    states: list[SessionState]

    @property
    def port(self) -> ZooKeeperPort: ...

    @property
    def recursive(self) -> RecursiveWatchesPort: ...

    def subscribe(self, listener: Callable[[SessionState], None]) -> None:
        """Call ``listener`` with every further state of the session."""
        ...

    async def settle(self) -> list[WatchedEvent]:
        """Wait until every watch has been delivered that a change so far has fired; take them."""
        ...

    async def drop_connection(self) -> None:
        """Lose the connection, and have it back."""
        ...

    async def expire(self) -> None:
        """Have the server end the session, and get the next one."""
        ...

    async def close(self) -> None:
        """End the session in an orderly way."""
        ...


class World(Protocol):
    """A ZooKeeper of one's own (or a chroot of one's own in a shared one)."""

    async def connect(self) -> Client: ...

    async def close(self) -> None: ...


class InMemoryHandle:
    def __init__(self, server: InMemoryZooKeeper, client: InMemoryClient) -> None:
        self.port = InMemoryZooKeeperPort(client)
        self.recursive = InMemoryRecursiveWatches(client)
        self.events: list[WatchedEvent] = []
        self.states: list[SessionState] = [SessionState.CONNECTED]
        self._server = server
        self._client = client
        client.take_events()

    def subscribe(self, listener: Callable[[SessionState], None]) -> None:
        self._client.on_event(lambda e: listener(e) if isinstance(e, SessionState) else None)

    async def settle(self) -> list[WatchedEvent]:
        self._take()
        taken, self.events = self.events, []
        return taken

    async def drop_connection(self) -> None:
        self._client.disconnect()
        self._client.reconnect()
        self._take()

    async def expire(self) -> None:
        self._server.expire(self._client.session_id)
        self._client.reconnect()
        self._take()

    async def close(self) -> None:
        self._client.close()

    def _take(self) -> None:
        for event in self._client.take_events():
            if isinstance(event, WatchedEvent):
                self.events.append(event)
            else:
                self.states.append(event)


class InMemoryWorld:
    def __init__(self) -> None:
        self.server = InMemoryZooKeeper()

    async def connect(self) -> InMemoryHandle:
        return InMemoryHandle(self.server, self.server.connect(chroot="/some/chroot"))

    async def close(self) -> None:
        pass


class RealHandle:
    def __init__(self, session: ZooKeeperSession) -> None:
        self.events: list[WatchedEvent] = []
        self.states: list[SessionState] = []
        self.port = KazooZooKeeper(session, on_watch=self.events.append)
        self.recursive = RecursiveWatches(session)
        self._session = session
        session.subscribe(self.states.append)

    def subscribe(self, listener: Callable[[SessionState], None]) -> None:
        self._session.subscribe(listener)

    async def settle(self) -> list[WatchedEvent]:
        # The server sends what watches have to say before the answer to a later request.
        await self.port.exists(["/"])
        taken = list(self.events)
        self.events.clear()
        return taken

    async def drop_connection(self) -> None:
        expected = self.states.count(SessionState.RECONNECTED) + 1
        self._session.generation().client._call(_CONNECTION_DROP, _Ignore())
        await until(lambda: self.states.count(SessionState.RECONNECTED) >= expected)

    async def expire(self) -> None:
        """Open the same session a second time and close it, which ends it for both."""
        expected = self.states.count(SessionState.CONNECTED) + 1
        session_id, _password = present(self._session.generation().client.client_id)
        hosts = ",".join(self._session.settings.hosts)
        await asyncio.to_thread(end_session, hosts, session_id)
        await until(lambda: self.states.count(SessionState.CONNECTED) >= expected)

    async def close(self) -> None:
        await self._session.close()


class RealWorld:
    """A chroot of its own on a server that others may use, too."""

    _numbers = itertools.count()

    def __init__(self, connect_string: str) -> None:
        self._connect_string = f"{connect_string}/world-{next(self._numbers)}/chroot"
        self._clients: list[RealHandle] = []

    async def connect(self) -> RealHandle:
        session = ZooKeeperSession(
            settings_for(self._connect_string, session_timeout_ms=SESSION_TIMEOUT_MS)
        )
        client = RealHandle(session)
        self._clients.append(client)
        await session.start(timeout_s=DEADLINE_S)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


class _Ignore:
    def set(self, value: object, /) -> None:
        pass

    def set_exception(self, exception: Exception, /) -> None:
        pass
