"""Connections that come at once do not take the files that others need."""

from __future__ import annotations

import contextlib
import socket

import pytest

from tests.support.event_loop import until_idle
from tests.support.waiting import until
from tests.unit.few_files import few_files_left
from tests.unit.network.kafka_servers import Controller, at, limited, serving

CLIENTS = 80


async def test_simultaneous_clients_are_refused_in_turn(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Controller(), limited(connections_per_address=1)) as server:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.socket()) for _ in range(CLIENTS)]
            for client in clients:
                client.setblocking(False)
            with few_files_left(8):
                for client in clients:
                    with contextlib.suppress(BlockingIOError):
                        client.connect(("127.0.0.1", server.port))
                await until(at(server, accepted=CLIENTS))
                await until_idle()
    assert [entry for entry in caplog.records if entry.name == "asyncio"] == []
