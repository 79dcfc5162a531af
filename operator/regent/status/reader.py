"""Reading a cluster's znodes for people: one session, below a chroot, nothing is written."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

from regent.model.errors import ConfigurationError
from regent.zk_data.operations import DatedZNode, ZNode
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings

CONNECT_TIMEOUT_S: Final = 10.0
_SESSION_TIMEOUT_MS: Final = 10_000


class ZNodeReads(Protocol):
    """What is needed of a ZooKeeper client; see :class:`KazooZooKeeper`."""

    async def exists(self, paths: Sequence[str]) -> Sequence[bool]: ...

    async def get_data(self, paths: Sequence[str]) -> Sequence[ZNode | None]: ...

    async def get_dated(self, paths: Sequence[str]) -> Sequence[DatedZNode | None]: ...

    async def get_children(self, paths: Sequence[str]) -> Sequence[Sequence[str] | None]: ...


class ClusterReader:
    """Reads below a chroot.

    The session has none itself: it would create one that is missing, and nothing is to be written.
    """

    def __init__(self, client: ZNodeReads, chroot: str) -> None:
        self._client = client
        self._chroot = chroot

    async def has_chroot(self) -> bool:
        (exists,) = await self._client.exists([self._chroot or "/"])
        return exists

    async def get_data(self, nodes: Sequence[str]) -> Sequence[ZNode | None]:
        return await self._client.get_data([self._chroot + node for node in nodes])

    async def get_dated(self, nodes: Sequence[str]) -> Sequence[DatedZNode | None]:
        return await self._client.get_dated([self._chroot + node for node in nodes])

    async def get_children(self, nodes: Sequence[str]) -> Sequence[Sequence[str] | None]:
        return await self._client.get_children([self._chroot + node for node in nodes])


@asynccontextmanager
async def open_cluster(settings: ZooKeeperSettings) -> AsyncIterator[ClusterReader]:
    """A reader for the chroot of the settings, in a session of its own.

    Raises:
        ConfigurationError: The chroot does not exist.
        ZooKeeperUnavailableError: No server answered.
    """
    session = ZooKeeperSession(
        dataclasses.replace(settings, chroot="", session_timeout_ms=_SESSION_TIMEOUT_MS)
    )
    try:
        await session.start(timeout_s=CONNECT_TIMEOUT_S)
        client = KazooZooKeeper(session, on_watch=lambda _: None)
        reader = ClusterReader(client, settings.chroot)
        if not await reader.has_chroot():
            raise ConfigurationError(
                f"there is no {settings.chroot} in ZooKeeper; name the chroot of the brokers' "
                "zookeeper.connect"
            )
        yield reader
    finally:
        await session.close()
