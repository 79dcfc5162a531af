"""Clients of the in-memory ZooKeeper behind the controller's ports, in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from regent.model.errors import SessionExpiredError
from regent.simulation.zookeeper import Event, InMemoryClient
from regent.zk_data.operations import (
    Check,
    Operation,
    SessionState,
    WatchedEventType,
    WriteResult,
    ZNode,
)


class InMemoryZooKeeperPort:
    """A client as a ``ZooKeeperPort``: calls made without a connection wait for it to come back."""

    def __init__(self, client: InMemoryClient) -> None:
        self._client = client
        self._connected = asyncio.Event()
        if client.is_connected:
            self._connected.set()
        client.on_event(self._observe)

    @property
    def session_id(self) -> int:
        return self._client.session_id

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        await self._connection()
        return self._client.get_data(paths, watch=watch)

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        await self._connection()
        return self._client.get_children(paths, watch=watch)

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> Sequence[bool]:
        await self._connection()
        return self._client.exists(paths, watch=watch)

    async def multi(self, operations: Sequence[Operation]) -> Sequence[WriteResult]:
        await self._connection()
        return self._client.multi(operations)

    async def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> Sequence[WriteResult]:
        await self._connection()
        return self._client.write(operations, guard=guard, divides=divides)

    async def _connection(self) -> None:
        session_id = self._client.session_id
        if session_id:
            await self._connected.wait()
        if not session_id or session_id != self._client.session_id:
            raise SessionExpiredError("the ZooKeeper session is gone")

    def _observe(self, event: Event) -> None:
        match event:
            case SessionState.SUSPENDED:
                self._connected.clear()
            case SessionState.CONNECTED | SessionState.RECONNECTED:
                self._connected.set()


class InMemoryRecursiveWatches:
    """A client's recursive watches as a ``RecursiveWatchesPort``."""

    def __init__(self, client: InMemoryClient) -> None:
        self._client = client
        self._watched: dict[str, None] = {}
        self._touched: dict[str, WatchedEventType] = {}
        self._listener: Callable[[], None] | None = None
        client.on_touched(self._observe)

    def listen(self, listener: Callable[[], None]) -> None:
        self._listener = listener

    async def add(self, paths: Sequence[str]) -> None:
        self._watched.update(dict.fromkeys(paths))
        self._client.watch_below(paths)

    async def restore(self) -> None:
        self._client.watch_below(list(self._watched))

    async def remove(self, paths: Sequence[str]) -> None:
        self._client.remove_watches(paths)
        for path in paths:
            self._watched.pop(path, None)

    def take(self) -> dict[str, WatchedEventType]:
        taken, self._touched = self._touched, {}
        return taken

    def _observe(self, type_: WatchedEventType, path: str) -> None:
        is_first = not self._touched
        self._touched[path] = type_
        if is_first and self._listener is not None:
            self._listener()
