"""What a peer of the server may take, in time, bytes, connections and requests."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from regent.network import connection_registry
from regent.network.server_statistics import CloseReason
from regent.protocol.framing import RequestHeader
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN, Api
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import Admission, Peer
from tests.support.kafka_client import connected, request_frame
from tests.support.served_requests import make
from tests.support.waiting import until
from tests.unit.network.kafka_servers import (
    NONE_LEFT,
    Controller,
    at,
    closed_for,
    limited,
    served,
    serving,
)

OVERHEAD = 64
"""Bytes that a request counts beside its own."""

STRANGER = "127.0.0.2"
"""Another address of this machine than clients of the tests have."""


class Belief:
    """Takes all peers for brokers, or nobody."""

    def __init__(self, is_broker: bool) -> None:
        self.is_broker = is_broker

    async def __call__(self, _: RequestHeader, __: Peer) -> Admission:
        return Admission(is_broker=self.is_broker)


async def test_an_idle_connection_is_closed(controller: Controller) -> None:
    async with served(controller, limited(idle_s=0.05)) as (server, client):
        await client.closed()
        await closed_for(server, CloseReason.IDLE)


async def test_a_request_that_does_not_end_closes_the_connection(controller: Controller) -> None:
    async with served(controller, limited(frame_s=0.05)) as (server, client):
        client.writer.write(struct.pack(">ih", 8, 7))
        await client.closed()
        await closed_for(server, CloseReason.SLOW_REQUEST)


async def test_unanswered_request_closes_its_connection(controller: Controller) -> None:
    controller.may_answer.clear()
    async with served(controller, limited(request_s=0.05)) as (server, client):
        client.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        await client.closed()
        await closed_for(server, CloseReason.REQUEST_TIME)
        assert controller.in_progress == 0


async def test_a_peer_that_takes_no_answers_is_closed(controller: Controller) -> None:
    topic = {"topicName": "t" * 30_000, "partitionIndex": 1}
    large = {"errorCode": 0, "remainingPartitions": [topic] * 200}
    controller.answers[1] = make(CONTROLLED_SHUTDOWN.responses[3], large)
    async with served(controller, limited(frame_s=0.2)) as (server, client):
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(20):
            client.send(CONTROLLED_SHUTDOWN, 3, {"brokerId": 1})
        await closed_for(server, CloseReason.SLOW_TO_TAKE_ANSWER)


async def test_a_frame_over_the_limit_is_not_waited_for(controller: Controller) -> None:
    async with serving(controller, limited(frame_bytes=1000)) as server:
        async with connected(server.port) as client:
            client.send_frame(struct.pack(">hhih", 7, 1, 1, -2) + bytes(990))  # as large as may be
            await client.closed()
        await closed_for(server, CloseReason.MALFORMED)
        async with connected(server.port) as client:
            client.writer.write(struct.pack(">i", 1001))
            await client.closed()
        await closed_for(server, CloseReason.FRAME_SIZE)


async def test_largest_connection_closes_when_memory_is_short(controller: Controller) -> None:
    async with serving(controller, limited(buffered_bytes=100_000)) as server:
        async with connected(server.port) as modest, connected(server.port) as greedy:
            modest.writer.write(struct.pack(">ihh", 12, 7, 0))
            await until(at(server, buffered_bytes=8))
            greedy.writer.write(struct.pack(">i", 200_000) + bytes(150_000))
            await greedy.closed()
            await closed_for(server, CloseReason.BUFFERED_BYTES)
            modest.writer.write(struct.pack(">ii", 5, 1))
            assert await modest.answer(CONTROLLED_SHUTDOWN, 0, 5)
        await until(at(server, buffered_bytes=0, connections=0))


async def test_small_requests_that_wait_count_what_they_take(controller: Controller) -> None:
    """The memory of each is some times its bytes."""
    controller.may_answer.clear()
    async with serving(controller) as server, connected(server.port) as client:
        client.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        await until(lambda: controller.in_progress == 1)
        small = struct.pack(">i2s", 2, b"ab") * 20_000
        tracemalloc.start()
        try:
            client.writer.write(small)
            await until(lambda: server.statistics.buffered_bytes > 64 * 1024)
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert taken < 2 * server.statistics.buffered_bytes


async def test_strangers_memory_does_not_close_a_broker(controller: Controller) -> None:
    """Each of their connections holds less than the broker's, all of them hold more."""
    padded = request_frame(CONTROLLED_SHUTDOWN, 1, 7, {"brokerId": 1}) + bytes(40_000)
    async with (
        serving(controller, limited(buffered_bytes=110_000)) as server,
        connected(server.port) as broker,
        contextlib.AsyncExitStack() as strangers,
    ):
        for _ in range(3):
            stranger = await strangers.enter_async_context(connected(server.port, local=STRANGER))
            stranger.writer.write(struct.pack(">i", 200_000) + bytes(30_000))
        await until(lambda: server.statistics.buffered_bytes == 3 * 30_004)
        broker.send_frame(padded)
        assert await broker.answer(CONTROLLED_SHUTDOWN, 1, 7)
        await closed_for(server, CloseReason.BUFFERED_BYTES)


async def test_who_holds_little_stays_when_memory_is_short(controller: Controller) -> None:
    """Also where a broker at its address holds most."""
    admit = Belief(False)
    async with (
        serving(controller, limited(buffered_bytes=100_000), admit=admit) as server,
        connected(server.port) as modest,
        connected(server.port) as broker,
    ):
        await modest.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
        admit.is_broker = True
        await broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        broker.writer.write(struct.pack(">i", 200_000) + bytes(150_000))
        await broker.closed()
        await closed_for(server, CloseReason.BUFFERED_BYTES)
        admit.is_broker = False
        await modest.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})


async def test_an_address_cannot_take_the_places_of_others(controller: Controller) -> None:
    async with (
        serving(controller, limited(connections=3)) as server,
        connected(server.port) as broker,
        connected(server.port, local=STRANGER) as _one,
        connected(server.port, local=STRANGER) as _two,
    ):
        await until(at(server, connections=3))
        for _ in range(5):
            async with connected(server.port, local=STRANGER):
                pass
        assert await broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"connections": 3}, CloseReason.TOO_MANY),
        ({"connections_per_address": 2}, CloseReason.TOO_MANY_OF_ADDRESS),
    ],
)
async def test_new_peer_replaces_the_longest_idle_of_its_address(
    limit: dict[str, int], reason: CloseReason, controller: Controller
) -> None:
    async with (
        serving(controller, limited(**limit)) as server,
        connected(server.port, local=STRANGER) as other,
        connected(server.port) as oldest,
        connected(server.port) as active,
    ):
        for client in (other, oldest, active):
            await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        async with connected(server.port) as newest:
            await oldest.closed()
            await closed_for(server, reason)
            for client in (other, active, newest):
                await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})


async def test_clients_leave_places_to_brokers(controller: Controller) -> None:
    """Behind NAT, or in a network of 64 bits, everybody has one address."""
    admit = Belief(True)
    async with (
        serving(controller, limited(connections_per_address=3), admit=admit) as server,
        connected(server.port) as broker,
    ):
        await broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        admit.is_broker = False
        async with contextlib.AsyncExitStack() as clients:
            for _ in range(10):
                client = await clients.enter_async_context(connected(server.port))
                await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
            admit.is_broker = True
            async with connected(server.port) as other_broker:
                await other_broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 3})
                await broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})


async def test_connection_rate(controller: Controller, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        serving(controller, limited(connection_rate=0.001)) as server,
        connected(server.port) as first,
    ):
        await first.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        async with connected(server.port) as second:
            await second.closed()
        await closed_for(server, CloseReason.CONNECTION_RATE)
    assert "endpoint_max_connection_rate" in caplog.records[-1].__dict__["remedy"]


async def test_requests_over_the_rate_wait(controller: Controller) -> None:
    async with served(controller, limited(request_rate=0.001)) as (server, client):
        await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        client.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
        await until(at(server, throttled=1))
        assert controller.brokers == [1]


async def test_small_request_passes_large_ones_of_its_address(controller: Controller) -> None:
    large = bytes(2_200_000)
    async with (
        serving(controller, limited(request_rate=1000.0)) as server,
        contextlib.AsyncExitStack() as clients,
    ):
        for number in range(1, 5):
            client = await clients.enter_async_context(connected(server.port))
            frame = request_frame(CONTROLLED_SHUTDOWN, 1, number, {"brokerId": number})
            client.send_frame(frame + large)
        # The first may have passed already: the other three wait for seconds.
        await until(lambda: server.statistics.buffered_bytes > 3 * len(large))
        async with connected(server.port) as small:
            await small.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 9})
        assert len(controller.brokers) < 4


async def test_requests_over_the_number_in_progress_wait(controller: Controller) -> None:
    controller.may_answer.clear()
    async with (
        serving(controller, limited(requests_in_progress=1)) as server,
        connected(server.port) as one,
        connected(server.port) as other,
    ):
        first = one.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        await until(lambda: controller.in_progress == 1)
        second = other.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
        await until(lambda: server.statistics.buffered_bytes == 2 * (22 + OVERHEAD))
        controller.may_answer.set()
        await one.answer(CONTROLLED_SHUTDOWN, 1, first)
        await other.answer(CONTROLLED_SHUTDOWN, 1, second)
    assert controller.most_in_progress == 1


async def brokers_are_at_home(_: RequestHeader, peer: Peer) -> Admission:
    return Admission(is_broker=peer.address != STRANGER)


async def test_a_broker_does_not_wait_for_strangers_to_be_judged(controller: Controller) -> None:
    """That takes long where a name server does not answer, and any number may ask."""
    judged = 0

    async def admit(header: RequestHeader, peer: Peer) -> Admission:
        nonlocal judged
        judged += 1
        if peer.address == STRANGER:
            await asyncio.Event().wait()
        return await brokers_are_at_home(header, peer)

    async with (
        serving(controller, limited(requests_in_progress=1), admit=admit) as server,
        connected(server.port) as broker,
        connected(server.port, local=STRANGER) as stranger,
    ):
        stranger.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
        await until(lambda: judged == 1)
        await broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})


class Tedious(ServerCodec):
    """Reads what strangers send when the test says so."""

    def __init__(self, apis: Mapping[int, Api]) -> None:
        super().__init__(apis)
        self.may_read = threading.Event()
        self.is_reading = False

    def decode(self, frame: bytes) -> Request:
        request = super().decode(frame)
        if request.entity.broker_id == 2:
            self.is_reading = True
            self.may_read.wait()
        return request


async def test_broker_does_not_wait_for_large_requests(controller: Controller) -> None:
    """Each may take a second, and many may wait."""
    large = bytes(100_000)
    async with (
        serving(controller, admit=brokers_are_at_home) as server,
        connected(server.port) as broker,
        connected(server.port, local=STRANGER) as stranger,
    ):
        server.codec = codec = Tedious(server.codec.apis)
        stranger.send_frame(request_frame(CONTROLLED_SHUTDOWN, 1, 1, {"brokerId": 2}) + large)
        try:
            await until(lambda: codec.is_reading)
            broker.send_frame(request_frame(CONTROLLED_SHUTDOWN, 1, 7, {"brokerId": 1}) + large)
            assert await broker.answer(CONTROLLED_SHUTDOWN, 1, 7)
        finally:
            codec.may_read.set()


class Laborious(Controller):
    """Takes some milliseconds of the processor for each request."""

    async def __call__(self, request: Request, peer: Peer) -> Any:
        ends = time.thread_time() + 0.01
        while time.thread_time() < ends:
            pass
        return await super().__call__(request, peer)


async def test_requests_wait_for_the_cost_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones pass; each costs what 300 others do. However many wait, one comes after the
    other."""
    monkeypatch.setattr(connection_registry, "TIME_SHARE", 1 / 300)
    controller = Laborious()
    async with (
        serving(controller, limited(request_rate=100.0)) as server,
        contextlib.AsyncExitStack() as clients,
    ):
        for broker_id in range(5):
            client = await clients.enter_async_context(connected(server.port))
            client.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": broker_id})
        await until(at(server, throttled=2))
        assert len(controller.brokers) == 2


async def test_what_brokers_requests_cost_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_registry, "TIME_SHARE", 1e-6)
    controller = Laborious()
    async with served(controller, limited(request_rate=100.0), admit=Belief(True)) as (
        server,
        client,
    ):
        for broker_id in range(5):
            await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": broker_id})
        assert server.statistics.throttled == 0


async def test_brokers_do_not_wait_for_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_registry, "TIME_SHARE", 1e-6)
    admit = Belief(False)
    controller = Laborious()
    async with (
        serving(controller, limited(request_rate=100.0), admit=admit) as server,
        connected(server.port) as broker,
        connected(server.port) as other,
        connected(server.port) as third,
    ):
        admit.is_broker = True
        await broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        admit.is_broker = False
        await other.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
        third.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 3})
        await until(at(server, throttled=1))
        admit.is_broker = True
        await broker.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        assert controller.brokers == [1, 2, 1]


async def test_the_request_of_a_peer_that_may_not_ask_is_not_read(controller: Controller) -> None:
    """To read a large one takes seconds. What is behind the header could not be read at all."""
    refusal = make(CONTROLLED_SHUTDOWN.responses[3], {**NONE_LEFT, "errorCode": 31})
    asked: list[tuple[int, int]] = []

    async def admit(header: RequestHeader, _: Peer) -> Admission:
        asked.append((header.api_key, header.api_version))
        return Admission(answer=refusal)

    async with served(controller, admit=admit) as (server, client):
        client.send_frame(struct.pack(">hhi", CONTROLLED_SHUTDOWN.key, 3, 7) + b"\xff" * 100_000)
        answer = await client.answer(CONTROLLED_SHUTDOWN, 3, 7)
        assert answer == refusal
        assert asked == [(CONTROLLED_SHUTDOWN.key, 3)]
        assert controller.brokers == []
        assert server.statistics.requests[CONTROLLED_SHUTDOWN.name] == 1
