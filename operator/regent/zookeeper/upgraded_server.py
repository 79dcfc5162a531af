"""Whether a server has learned requests that it did not know, as after its upgrade.

A session outlives the upgrade of servers, if they are upgraded one by one, or in less time than its
timeout. Asking an older server costs the connection, with every watch. So it is asked over a short
session of its own.
"""

from __future__ import annotations

import asyncio

from regent.runtime.blocking_call import call_blocking
from regent.zookeeper.establishing import find_bulk_reads
from regent.zookeeper.generation import Generation, is_repeatable
from regent.zookeeper.host_lookup import Address, KnownServer
from regent.zookeeper.recursive_watch_requests import AddWatch, is_unknown
from regent.zookeeper.settings import ZooKeeperSettings


async def is_upgraded(server: Address, settings: ZooKeeperSettings) -> bool:
    """Whether a server knows bulk reads and recursive watches, both of ZooKeeper 3.6.

    Raises:
        SessionExpiredError: If there is no session for this.
        ZooKeeperUnavailableError: If the server does not answer within the bound.
    """
    short = Generation(
        settings,
        loop=asyncio.get_running_loop(),
        listener=_NoListener(),
        lookup=KnownServer(server),
    )
    try:
        short.client.start_async()
        await find_bulk_reads(short)
        return short.has_bulk_reads and await _knows_recursive_watches(short)
    finally:
        await call_blocking(short.client.dispose)


async def _knows_recursive_watches(generation: Generation) -> bool:
    (answer,) = await generation.call([AddWatch(generation.absolute("/"))])
    is_lost = isinstance(answer, Exception) and is_repeatable(answer)
    return not (is_lost or is_unknown(answer))


class _NoListener:
    """Nobody else uses the session."""

    def on_connected(self, generation: Generation) -> None:
        pass

    def on_suspended(self, generation: Generation) -> None:
        pass

    def on_ended(self, generation: Generation, state: str) -> None:
        pass
