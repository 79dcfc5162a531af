"""Accepts connections one at a time.

asyncio accepts as many in one go as the backlog has, before the first of them can be refused. Many
that come at once then take all files that the process may have open, also those that ZooKeeper and
brokers need; and each attempt of the hundred that fails is reported with a traceback.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from regent.network.listening import BACKLOG


async def accept_one_by_one(
    factory: Callable[[], asyncio.Protocol], listening: socket.socket
) -> asyncio.Server:
    """A server that makes a protocol for each connection, in the running loop."""
    server = await asyncio.get_running_loop().create_server(factory, sock=listening, backlog=1)
    listening.listen(BACKLOG)  # those that wait meanwhile: asyncio has one number for both
    return server
