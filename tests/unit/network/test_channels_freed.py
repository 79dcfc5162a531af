"""A channel that has ended is freed at once, with all that waited for its broker.

What a term leaves the collector of Python hardly ever looks at: a circle of references would stay
as long as the process, and what waits for a broker may be every partition of the cluster.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import SO_LINGER, SOL_SOCKET

import msgspec
import pytest

from regent.model.cluster import Broker, EndPoint
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.tls import ReloadingTls
from tests.support.stub_broker import StubBroker
from tests.support.waiting import until
from tests.unit.network.open_channels import DEAD_PORT, FAST, batch, channels

pytestmark = pytest.mark.usefixtures("without_the_collector")


def channel_to(manager: ControllerChannelManager, broker_id: int) -> Callable[[], object]:
    """A channel that is open, as long as somebody else keeps it."""
    return weakref.ref((manager._channels | manager._standing_by)[broker_id])


async def expect_freed_when_closed(manager: ControllerChannelManager) -> None:
    """The channel to broker 1 is closed, and nobody keeps it."""
    channel = channel_to(manager, 1)
    manager.close_all()
    await manager.wait_closed()
    await until(lambda: channel() is None, "the channel to be freed")


@asynccontextmanager
async def answering(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None],
    protocol: str,
) -> AsyncIterator[Broker]:
    """A broker whose every connection is answered so."""
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield Broker(1, 7, (EndPoint(protocol, protocol, "127.0.0.1", port),))


async def test_one_that_has_nothing_to_send() -> None:
    async with StubBroker(1) as stub, channels(stub.registration) as (manager, responses):
        manager.send(batch(stub))
        await responses.wait_for(3)
        await expect_freed_when_closed(manager)


async def test_one_whose_broker_does_not_answer() -> None:
    async with StubBroker(1) as stub, channels(stub.registration) as (manager, _):
        stub.hold.clear()
        manager.send(batch(stub))
        manager.send(batch(stub, number=1))
        await stub.wait_for(1)
        await expect_freed_when_closed(manager)
        stub.hold.set()


async def test_one_whose_broker_is_out_of_reach() -> None:
    broker = Broker(1, 7, (EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", DEAD_PORT),))
    async with channels(broker) as (manager, _):
        await until(lambda: manager.problems(), "the channel to have failed")
        await expect_freed_when_closed(manager)


async def test_one_whose_broker_begins_no_tls() -> None:
    """As in a cluster whose brokers are just being set up for it."""

    def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"no TLS")
        writer.close()

    settings = msgspec.structs.replace(
        FAST, tls=ReloadingTls("TLS", (), ssl.create_default_context)
    )
    async with (
        answering(refuse, "SSL") as broker,
        channels(broker, settings=settings) as (manager, _),
    ):
        await until(lambda: manager.problems(), "the channel to have failed")
        await expect_freed_when_closed(manager)


async def test_one_whose_broker_resets_connections() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
        writer.transport.abort()

    async with answering(reset, "PLAINTEXT") as broker, channels(broker) as (manager, _):
        await until(lambda: manager.problems(), "the channel to have failed")
        await expect_freed_when_closed(manager)


async def test_one_that_a_standby_has() -> None:
    async with StubBroker(1) as stub, channels() as (manager, _):
        manager.close_all()
        manager.stand_by([stub.registration])
        await until(lambda: manager.standing_by, "the connection of the standby")
        await expect_freed_when_closed(manager)


async def test_one_that_is_replaced_when_its_broker_has_started_again() -> None:
    async with StubBroker(1) as stub, channels(stub.registration) as (manager, responses):
        manager.send(batch(stub))
        await responses.wait_for(3)
        channel = channel_to(manager, 1)
        manager.update(opened=[stub.registration])
        await until(lambda: channel() is None, "the channel to be freed")
