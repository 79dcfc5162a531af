"""A server that is closed while somebody connects leaves no socket open."""

from __future__ import annotations

import asyncio
import gc
import socket
from typing import cast

from regent.sockets.accepting import accept_one_by_one, stop_accepting
from regent.sockets.listening import listening_socket
from tests.support.event_loop import until_idle


class Closing(asyncio.Protocol):
    """Closes its connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


async def test_connection_of_a_closed_server_is_closed() -> None:
    """In whichever turn of the loop the server is closed. The warning of a socket that is left open
    fails the test."""
    for turns in range(5):
        with listening_socket("127.0.0.1", 0, setting="test") as listening:
            server = await accept_one_by_one(Closing, listening)
            with socket.create_connection(listening.getsockname()):
                for _ in range(turns):
                    await asyncio.sleep(0)
                await stop_accepting(server)
                await server.wait_closed()
                await until_idle()
    gc.collect()
