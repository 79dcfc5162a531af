"""What the endpoint reads in ZooKeeper: little at a time.

Requests to ZooKeeper wait for each other in one queue, and the controller's wait behind what was
asked before. Each request of a client may take some reads, and hundreds of clients may ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from regent.runtime.zookeeper_read_port import ZooKeeperReadPort
from regent.zk_data.operations import ZNode

AT_ONCE: Final = 2


class FewReadsAtOnce:
    """Has reads wait for each other. Belongs into the controller's loop.

    Implements :class:`~regent.runtime.zookeeper_read_port.ZooKeeperReadPort`.

    Args:
        zookeeper: Reads.
        at_once: So many calls are under way at the same time; further ones wait.
    """

    def __init__(self, zookeeper: ZooKeeperReadPort, *, at_once: int = AT_ONCE) -> None:
        self._zookeeper = zookeeper
        self._turns = asyncio.Semaphore(at_once)

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        async with self._turns:
            return await self._zookeeper.get_data(paths, watch=watch)

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        async with self._turns:
            return await self._zookeeper.get_children(paths, watch=watch)

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> Sequence[bool]:
        async with self._turns:
            return await self._zookeeper.exists(paths, watch=watch)
