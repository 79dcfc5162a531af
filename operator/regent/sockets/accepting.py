"""Accepts connections one at a time.

asyncio accepts as many in one go as the backlog has, before the first of them can be refused. Many
that come at once then take all files that the process may have open, also those that ZooKeeper and
brokers need; and each attempt of the hundred that fails is reported with a traceback.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from regent.sockets.listening import BACKLOG


async def accept_one_by_one(
    factory: Callable[[], asyncio.Protocol], listening: socket.socket
) -> asyncio.Server:
    """A server that makes a protocol for each connection, in the running loop."""
    server = await asyncio.get_running_loop().create_server(factory, sock=listening, backlog=1)
    listening.listen(BACKLOG)  # those that wait meanwhile: asyncio has one number for both
    return server


async def stop_accepting(server: asyncio.Server) -> None:
    """Close a server. Whoever it has accepted gets a protocol, which is to close the connection.

    asyncio has no place for one that was accepted in the same turn of the loop as the server is
    closed: it fails with an AssertionError, and leaves the socket open.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    server.close()
