"""A server that is closed while somebody connects leaves no socket open."""

from __future__ import annotations

import asyncio
import gc
import socket
from typing import cast

import pytest

from regent.sockets.accepting import accept_one_by_one, stop_accepting
from regent.sockets.listening import listening_socket


class Closing(asyncio.Protocol):
    """Closes its connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


@pytest.mark.parametrize("turns", range(5))
async def test_whoever_is_accepted_in_the_turn_in_which_it_is_closed_is_closed_too(
    turns: int,
) -> None:
    """The warning of a socket that is left open fails the test."""
    with listening_socket("127.0.0.1", 0, setting="test") as listening:
        server = await accept_one_by_one(Closing, listening)
        with socket.create_connection(listening.getsockname()):
            for _ in range(turns):
                await asyncio.sleep(0)
            await stop_accepting(server)
            await server.wait_closed()
            await asyncio.sleep(0)
    gc.collect()
