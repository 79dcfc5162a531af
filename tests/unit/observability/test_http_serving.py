"""An HTTP server with TLS: which connections count."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import NamedTuple

import aiohttp
import pytest
import trustme
from aiohttp import web

from regent.observability.http_connections import ConnectionLimiter, HttpLimits
from regent.observability.http_serving import serving
from regent.sockets.listening import listening_socket
from tests.support.waiting import until
from tests.unit.few_files import few_files_left

PATIENT = HttpLimits(request_s=300, total_s=300)


class Served(NamedTuple):
    port: int
    connections: ConnectionLimiter
    client: ssl.SSLContext


@asynccontextmanager
async def served(limits: HttpLimits = PATIENT) -> AsyncIterator[Served]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    application = web.Application()
    application.router.add_get("/", answer)
    listening = listening_socket("127.0.0.1", 0, setting="test")
    port = listening.getsockname()[1]
    async with serving(application, listening, limits, tls=tls) as connections:
        yield Served(port, connections, client)


async def until_there_are(connections: ConnectionLimiter, count: int) -> None:
    await until(lambda: len(connections) == count, f"{count} connections")


async def test_one_more_closes_the_oldest_of_the_address_that_has_most() -> None:
    """Who floods does not keep the kubelet's probe from its answer, however old that one is."""
    limits = HttpLimits(connections=4, request_s=300, total_s=300)
    async with served(limits) as (port, connections, _), AsyncExitStack() as clients:

        async def connect(address: str) -> asyncio.StreamReader:
            accepted = len(connections)
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(address, 0)
            )
            clients.callback(writer.close)
            await until_there_are(connections, min(accepted + 1, limits.connections))
            return reader

        probe = await connect("127.0.0.1")
        flood = [await connect("127.0.0.2") for _ in range(6)]
        for reader in flood[:2]:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        assert not probe.at_eof()


@pytest.mark.parametrize(
    ("sent", "is_reset"),
    [(b"", True), (b"\x16\x03\x01", False), (b"GET / HTTP/1.1\r\n\r\n", False)],
)
async def test_one_that_ends_before_tls_counts_no_more(sent: bytes, *, is_reset: bool) -> None:
    async with served() as (port, connections, _):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await until_there_are(connections, 1)
        writer.write(sent)
        if is_reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
        writer.close()
        await until_there_are(connections, 0)


async def test_one_that_is_answered_counts_no_more() -> None:
    async with served() as (port, connections, client), aiohttp.ClientSession() as session:
        async with session.get(f"https://localhost:{port}/", ssl=client) as answer:
            assert await answer.text() == "here"
        await until_there_are(connections, 0)


@pytest.mark.usefixtures("without_the_collector")
async def test_one_that_begins_no_tls_is_freed_at_once() -> None:
    """What has lived for a while the collector of Python hardly ever looks at."""
    async with served() as (port, connections, _):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await until_there_are(connections, 1)
        connection = weakref.ref(next(iter(connections._open)))
        writer.close()
        await until(lambda: connection() is None, "the connection to be freed")


@pytest.mark.parametrize("turns", range(3))
async def test_whoever_is_accepted_while_it_is_closed_is_closed_too(turns: int) -> None:
    """The warning of a socket that is left open fails the test."""
    async with AsyncExitStack() as stack:
        port, _, _ = await stack.enter_async_context(served())
        with socket.create_connection(("127.0.0.1", port)):
            for _ in range(turns):
                await asyncio.sleep(0)
            await stack.aclose()
            await asyncio.sleep(0)
    gc.collect()


async def test_many_at_once_do_not_take_the_files_that_others_need(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = HttpLimits(connections=2, request_s=300, total_s=300)
    async with served(limits) as (port, _, _):
        with ExitStack() as stack:
            clients = [stack.enter_context(socket.socket()) for _ in range(80)]
            for client in clients:
                client.setblocking(False)
            with few_files_left(8):
                for client in clients:
                    with suppress(BlockingIOError):
                        client.connect(("127.0.0.1", port))
                await asyncio.gather(*map(closed, clients[: -limits.connections]))
    assert [entry for entry in caplog.records if entry.name == "asyncio"] == []


async def closed(client: socket.socket) -> None:
    """Wait until the server has closed a client's connection."""
    with suppress(ConnectionResetError):
        assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
