"""A client's connection that has ended is freed at once, with its TLS.

What has lived for a while the collector of Python hardly ever looks at: a circle of references
would keep 40 kB for each TLS connection that clients have ever closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from regent.network.kafka_server import KafkaServer
from regent.protocol.sasl import SaslCredentials
from tests.support.kafka_client import connected
from tests.support.waiting import until
from tests.unit.network import kafka_servers, secured_servers
from tests.unit.network.kafka_servers import Controller, at, limited
from tests.unit.network.secured_servers import MECHANISMS, PASSWORD, Authority, shut_down

pytestmark = pytest.mark.usefixtures("without_the_collector")


def only_connection(server: KafkaServer) -> Callable[[], object]:
    """The only connection, as long as somebody else keeps it."""
    (connection,) = server.registry
    return weakref.ref(connection)


async def test_one_that_its_client_closes(controller: Controller) -> None:
    async with kafka_servers.serving(controller) as server:
        async with connected(server.port) as client:
            await shut_down(client)
            connection = only_connection(server)
        await until(lambda: connection() is None)


@pytest.mark.parametrize("sent", [b"", b"no TLS\r\n\r\n"], ids=["nothing", "something else"])
async def test_client_without_tls_freed(
    controller: Controller, tmp_path: Path, sent: bytes
) -> None:
    """A health check, for instance, or a client that is not set up for TLS."""
    authority = Authority(tmp_path)
    async with secured_servers.serving(controller, tls=authority.files) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await until(at(server, accepted=1))
        connection = only_connection(server)
        writer.write(sent)
        writer.close()
        await until(lambda: connection() is None)


async def test_one_whose_client_asks_for_what_is_not_supported(controller: Controller) -> None:
    async with kafka_servers.serving(controller) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await until(at(server, accepted=1))
        connection = only_connection(server)
        no_version_of_metadata = struct.pack(">ihhih", 10, 3, 99, 1, -1)
        writer.write(no_version_of_metadata)
        assert await reader.read() == b""
        writer.close()
        await until(lambda: connection() is None)


async def test_one_whose_client_does_not_wait_for_the_answer(controller: Controller) -> None:
    controller.may_answer.clear()
    async with kafka_servers.serving(controller) as server:
        async with connected(server.port) as client:
            asked = asyncio.ensure_future(shut_down(client))
            await until(lambda: controller.in_progress == 1)
            connection = only_connection(server)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        await until(lambda: connection() is None)


async def test_one_that_is_idle_for_too_long(controller: Controller) -> None:
    async with (
        kafka_servers.serving(controller, limited(idle_s=0.2)) as server,
        connected(server.port),
    ):
        await until(at(server, accepted=1))
        connection = only_connection(server)
        await until(lambda: connection() is None)


async def test_one_that_the_server_closes(controller: Controller, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with (
        secured_servers.serving(controller, tls=authority.files) as server,
        connected(server.port, context=authority.client()) as client,
    ):
        await shut_down(client)
        connection = only_connection(server)
        server.close_connections()
        await until(lambda: connection() is None)


@pytest.mark.parametrize("password", [PASSWORD, "another one"])
async def test_one_with_sasl(controller: Controller, tmp_path: Path, password: str) -> None:
    authority = Authority(tmp_path)
    async with secured_servers.serving(
        controller, tls=authority.files, mechanisms=MECHANISMS
    ) as server:
        async with connected(server.port, context=authority.client()) as client:
            await until(at(server, accepted=1))
            connection = only_connection(server)
            with contextlib.suppress(Exception):
                await client.authenticate(SaslCredentials("SCRAM-SHA-512", "a=user,1", password))
        await until(lambda: connection() is None)
