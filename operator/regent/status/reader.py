"""Reading a cluster's znodes for people: one session, below a chroot, nothing is written."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol, TypeVar

from regent.model.errors import ConfigurationError, UnexpectedZooKeeperError
from regent.zk_data.operations import DatedZNode, ZNode
from regent.zk_data.permitted_reads import (
    NO_AUTH,
    UNREADABLE_MAX,
    UnreadableZNode,
    may_not_be_read,
    read_in_parts,
)
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings

T = TypeVar("T")

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

    A node that may not be read is an :class:`~regent.zk_data.permitted_reads.UnreadableZNode`.

    Raises:
        ConfigurationError: By all reads: so many nodes are closed that the rights are wrong.
    """

    def __init__(self, client: ZNodeReads, chroot: str) -> None:
        self._client = client
        self._chroot = chroot

    async def has_chroot(self) -> bool:
        (exists,) = await self._client.exists([self._chroot or "/"])
        return exists

    async def get_data(self, nodes: Sequence[str]) -> Sequence[ZNode | None]:
        return await self._permitted(nodes, self._client.get_data, UnreadableZNode.at)

    async def get_dated(self, nodes: Sequence[str]) -> Sequence[DatedZNode | None]:
        def unreadable(path: str) -> DatedZNode:
            return DatedZNode(UnreadableZNode.at(path), 0, 0)

        return await self._permitted(nodes, self._client.get_dated, unreadable)

    async def children(self, node: str) -> Sequence[str] | None:
        """Names of a node's children, None where there is no node.

        Raises:
            MalformedZNodeError: The children may not be listed.
        """

        def unreadable(path: str) -> Sequence[str]:
            raise may_not_be_read(path)

        (found,) = await self._permitted([node], self._client.get_children, unreadable)
        return found

    async def _permitted(
        self,
        nodes: Sequence[str],
        read: Callable[[Sequence[str]], Coroutine[Any, Any, Sequence[T]]],
        unreadable: Callable[[str], T],
    ) -> Sequence[T]:
        async def below_chroot(some: Sequence[str]) -> Sequence[T]:
            return await read([self._chroot + node for node in some])

        try:
            return await read_in_parts(nodes, below_chroot, unreadable)
        except UnexpectedZooKeeperError as error:
            if error.code != NO_AUTH:
                raise
            raise ConfigurationError(
                f"{error}, and for more than {UNREADABLE_MAX} znodes in all: name a ZooKeeper user "
                "that may read them (--zookeeper-sasl-username)"
            ) from error


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
