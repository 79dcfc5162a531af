"""Requests that any broker can answer, passed on over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import weakref
from collections.abc import Callable

import msgspec
import pytest

from regent.network.server_statistics import CloseReason
from regent.protocol.framing import RequestHeader
from regent.protocol.served_apis import (
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    DESCRIBE_CONFIGS,
)
from tests.support.kafka_client import connected
from tests.support.raw_broker import NO_BYTES, answer_of
from tests.support.waiting import until
from tests.unit.network.kafka_servers import PLENTY, closed_for
from tests.unit.network.passing import ask, frame_of, one_broker, passing

FIND_COORDINATOR = 10


async def test_a_request_goes_to_a_broker_and_its_answer_back_as_they_are() -> None:
    async with one_broker() as (_, broker, client):
        frame = frame_of(FIND_COORDINATOR, 4, 1234, b"\0whatever it says")
        assert await ask(client, frame) == struct.pack(">i", 1234) + b"of 1"
        assert broker.frames == [frame]


async def test_answers_keep_the_order_of_the_requests() -> None:
    async with one_broker() as (_, _, client):
        for number in range(20):
            if number % 2:
                client.send_frame(frame_of(FIND_COORDINATOR, 0, number))
            else:
                body = struct.pack(">i", 1)
                client.send_frame(frame_of(CONTROLLED_SHUTDOWN.key, 1, number, body))
        found = [struct.unpack_from(">i", await client.frame())[0] for _ in range(20)]
        assert found == list(range(20))


async def test_requests_of_a_client_share_a_connection_and_those_of_two_do_not() -> None:
    async with one_broker() as (passed, broker, client):
        for number in range(3):
            await ask(client, frame_of(FIND_COORDINATOR, 0, number))
        assert broker.accepted == 1
        async with connected(passed.server.port) as other:
            await ask(other, frame_of(FIND_COORDINATOR, 0, 1))
            assert broker.open == passed.pass_through.statistics.upstream_connections == 2
        await until(lambda: broker.open == passed.pass_through.statistics.upstream_connections == 1)


@pytest.mark.parametrize("size", [0, 1, 65536 - 8, 65536, 3_000_001])
async def test_an_answer_of_any_size_comes_back_whole(size: int) -> None:
    async with one_broker() as (_, broker, client):
        body = bytes(range(256)) * (size // 256 + 1)
        broker.answer = lambda header, _: answer_of(header, body[:size])
        assert (await ask(client, frame_of(1, 4, 9)))[4:] == body[:size]


async def test_an_answer_waits_at_the_broker_until_the_client_takes_it() -> None:
    size = 128 * 1024 * 1024
    async with one_broker() as (_, broker, client):
        broker.answer = lambda header, _: answer_of(header, bytes(size))
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send_frame(frame_of(1, 4, 9))
        await until(lambda: broker.written > 0)
        seen = -1
        while broker.written != seen:  # until nothing moves any more
            seen = broker.written
            for _ in range(200):
                await asyncio.sleep(0)
        assert 0 < seen < size / 2
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        left = size + 8
        while left:
            left -= len(await client.reader.read(1024 * 1024))


@pytest.mark.parametrize(
    "lie",
    [
        lambda header: struct.pack(">ii", 8, header.correlation_id + 1) + b"body",
        lambda header: struct.pack(">ii", -1, header.correlation_id),
        lambda header: struct.pack(">ii", 3, header.correlation_id),
        lambda header: struct.pack(">ii", 2**31 - 1, header.correlation_id) + b"x" * 1000,
        lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        lambda _: None,
    ],
    ids=["another request's", "negative", "short", "huge", "http", "none"],
)
async def test_doubtful_answer_closes_client(lie: Callable[[RequestHeader], bytes | None]) -> None:
    async with one_broker() as (passed, broker, client):
        broker.answer = lambda header, _: lie(header)
        client.send_frame(frame_of(FIND_COORDINATOR, 0, 1))
        await client.closed()
        await closed_for(passed.server, CloseReason.UPSTREAM)
        assert passed.pass_through.statistics.upstream_connections == 0


async def test_a_broker_that_breaks_off_in_the_middle_of_an_answer_closes_the_client() -> None:
    async with one_broker() as (passed, broker, client):
        broker.answer = lambda header, _: struct.pack(">ii", 1000, header.correlation_id) + b"some"
        client.send_frame(frame_of(FIND_COORDINATOR, 0, 1))
        assert await client.reader.readexactly(12)
        await broker.stop()
        await client.closed()
        await closed_for(passed.server, CloseReason.UPSTREAM)
        await broker.start()


@pytest.mark.usefixtures("without_the_collector")
async def test_a_client_whose_broker_resets_the_connection_is_freed_at_once() -> None:
    """As all are that wait for an answer when a broker is killed."""
    async with one_broker() as (passed, broker, client):
        broker.answer = lambda *_: NO_BYTES
        client.send_frame(frame_of(FIND_COORDINATOR, 0, 1))
        await until(lambda: bool(broker.frames), "the broker to be asked")
        (connection,) = map(weakref.ref, passed.server.registry)
        broker.reset()
        await client.closed()
        await until(lambda: connection() is None, "the connection to be freed")


async def test_the_next_request_goes_to_another_broker_when_one_is_gone() -> None:
    async with passing((3, 9), (3, 9)) as passed, connected(passed.server.port) as client:
        first = int((await ask(client, frame_of(3, 1, 1)))[-1:])
        await passed.brokers[first - 1].stop()
        await until(lambda: all(each.is_lost for each in passed.pass_through.upstreams()))
        assert int((await ask(client, frame_of(3, 1, 2)))[-1:]) == 3 - first
        await passed.brokers[first - 1].start()


async def test_the_next_request_goes_to_another_broker_when_one_has_left_the_cluster() -> None:
    """Its host may be gone without a word: an open connection says nothing."""
    async with passing((3, 9), (3, 9)) as passed, connected(passed.server.port) as client:
        first = int((await ask(client, frame_of(3, 1, 1)))[-1:])
        del passed.listed[first - 1]
        assert int((await ask(client, frame_of(3, 1, 2)))[-1:]) == 3 - first
        await until(lambda: passed.brokers[first - 1].open == 0)


async def test_a_request_goes_to_a_broker_that_understands_its_version() -> None:
    async with passing((1, 1), (3, 9)) as passed, connected(passed.server.port) as client:
        for number in range(4):
            assert (await ask(client, frame_of(3, 12, number)))[4:] == b"of 2"
        client.send_frame(frame_of(3, 99, 1))
        await client.closed()
        await closed_for(passed.server, CloseReason.UPSTREAM)


async def test_brokers_share_the_clients() -> None:
    async with passing(*[(3, 9)] * 3) as passed, contextlib.AsyncExitStack() as stack:
        for _ in range(9):
            client = await stack.enter_async_context(connected(passed.server.port))
            await ask(client, frame_of(3, 1, 1))
        assert [broker.open for broker in passed.brokers] == [3, 3, 3]


async def test_a_stopping_broker_is_not_chosen_while_there_is_another() -> None:
    async with passing((3, 9), (3, 9)) as passed, contextlib.AsyncExitStack() as stack:
        passed.listed[0] = passed.listed[0]._replace(is_stopping=True)
        for _ in range(3):
            client = await stack.enter_async_context(connected(passed.server.port))
            await ask(client, frame_of(3, 1, 1))
        assert [broker.accepted for broker in passed.brokers] == [0, 3]


@pytest.mark.parametrize(
    ("version", "before"),
    [(0, b""), (3, b"\xff\xff"), (3, b"\0\1t"), (9, b"\0\0"), (11, b"\0\2t")],
)
async def test_produce_without_acks_closes_the_client(version: int, before: bytes) -> None:
    """Produce with acks=0, to whom does not lead the partition: brokers close the connection."""
    async with one_broker() as (passed, broker, client):
        await ask(client, frame_of(0, version, 1, before + struct.pack(">h", 1) + b"records"))
        client.send_frame(frame_of(0, version, 2, before + struct.pack(">h", 0) + b"records"))
        await client.closed()
        await closed_for(passed.server, CloseReason.ANSWERED_BY_CLOSE)
        assert len(broker.frames) == 1


@pytest.mark.parametrize("api_key", [4, 19, 58, 90, -1])
async def test_what_is_not_for_any_broker_is_neither_listed_nor_passed_on(api_key: int) -> None:
    async with one_broker() as (passed, broker, client):
        answer = await client.ask(API_VERSIONS, 0, {})
        assert api_key not in {each.api_key for each in answer.api_keys}
        client.send_frame(frame_of(api_key, 0, 1))
        await client.closed()
        await closed_for(passed.server, CloseReason.UNSUPPORTED)
        assert broker.frames == []


async def test_what_all_live_brokers_understand_is_listed_and_what_is_ours() -> None:
    async with passing((1, 1), (2, 4)) as passed, connected(passed.server.port) as client:
        answer = await client.ask(API_VERSIONS, 0, {})
        listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        assert listed[0] == (0, 5)
        assert listed[3] == (0, 5)
        assert listed[DESCRIBE_CONFIGS.key] == (0, 1)
        assert listed[CONTROLLED_SHUTDOWN.key] == (0, 3)
        assert 47 not in listed  # OffsetDelete, since 2.4
        assert list(listed) == sorted(listed)
        del passed.listed[0]
        answer = await client.ask(API_VERSIONS, 0, {})
        assert 47 in {each.api_key for each in answer.api_keys}


async def test_while_no_broker_is_known_clients_are_sent_elsewhere() -> None:
    """A list without the APIs that they need would be fatal to them."""
    async with one_broker() as (passed, _, client):
        passed.listed.clear()
        client.send(API_VERSIONS, 0, {})
        await client.closed()
        await closed_for(passed.server, CloseReason.UPSTREAM)


async def test_a_request_that_was_only_inspected_is_passed_on_as_it_is() -> None:
    async with one_broker() as (_, broker, client):
        resource = {"resourceType": 2, "resourceName": "t", "configurationKeys": None}
        fields = {"resources": [resource], "includeSynonyms": True}
        client.send(DESCRIBE_CONFIGS, 1, fields)
        assert (await client.frame())[4:] == b"of 1"
        assert broker.frames[0].endswith(b"\x00\x01t\xff\xff\xff\xff\x01")


async def test_the_controllers_own_requests_do_not_wait_for_a_broker() -> None:
    limits = msgspec.structs.replace(PLENTY, requests_in_progress=1)
    async with one_broker(limits=limits) as (passed, broker, client):
        broker.answer = lambda header, _: NO_BYTES
        client.send_frame(frame_of(3, 1, 1))
        await until(lambda: len(broker.frames) == 1)
        async with connected(passed.server.port) as other:
            assert await other.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})


async def test_a_client_that_goes_takes_its_connection_to_the_broker_along() -> None:
    async with passing() as passed:
        (broker,) = passed.brokers
        broker.answer = lambda header, _: NO_BYTES
        async with connected(passed.server.port) as client:
            client.send_frame(frame_of(3, 1, 1))
            await until(lambda: len(broker.frames) == 1)
        await until(lambda: broker.open == passed.pass_through.statistics.upstream_connections == 0)


async def test_a_broker_that_does_not_answer_costs_the_client_its_connection() -> None:
    limits = msgspec.structs.replace(PLENTY, request_s=0.2)
    async with one_broker(limits=limits) as (passed, broker, client):
        broker.answer = lambda header, _: NO_BYTES
        client.send_frame(frame_of(3, 1, 1))
        await client.closed()
        await closed_for(passed.server, CloseReason.REQUEST_TIME)
        await until(lambda: broker.open == 0)


async def test_excess_connection_closes_an_idle_one() -> None:
    async with passing(connections=2) as passed, contextlib.AsyncExitStack() as stack:
        (broker,) = passed.brokers
        clients = [await stack.enter_async_context(connected(passed.server.port)) for _ in range(3)]
        for number, client in enumerate([*clients, *clients]):
            await ask(client, frame_of(3, 1, number))
            assert passed.pass_through.statistics.upstream_connections <= 2
        await until(lambda: broker.open == 2)
        assert broker.accepted == 6


async def test_one_connection_too_many_while_all_are_busy_closes_one_of_them() -> None:
    async with passing(connections=2) as passed, contextlib.AsyncExitStack() as stack:
        (broker,) = passed.brokers
        broker.answer = lambda header, _: NO_BYTES
        for number in range(3):
            client = await stack.enter_async_context(connected(passed.server.port))
            client.send_frame(frame_of(3, 1, number))
            await until(lambda number=number: len(broker.frames) == number + 1)  # type: ignore[misc]
        await closed_for(passed.server, CloseReason.UPSTREAM)
        assert passed.pass_through.statistics.upstream_connections == 2


async def test_an_idle_connection_to_a_broker_is_closed_and_the_clients_is_not() -> None:
    async with one_broker(idle_s=0.1) as (passed, broker, client):
        await ask(client, frame_of(3, 1, 1))
        await until(lambda: broker.open == passed.pass_through.statistics.upstream_connections == 0)
        await ask(client, frame_of(3, 1, 2))
        assert broker.accepted == 2


async def test_a_broker_out_of_reach_is_left_for_another_one() -> None:
    async with passing((3, 9), (3, 9)) as passed, contextlib.AsyncExitStack() as stack:
        await passed.brokers[0].stop()
        for number in range(4):
            client = await stack.enter_async_context(connected(passed.server.port))
            assert (await ask(client, frame_of(3, 1, number)))[4:] == b"of 2"
        await passed.brokers[1].stop()
        client = await stack.enter_async_context(connected(passed.server.port))
        client.send_frame(frame_of(3, 1, 1))
        await client.closed()
        await until(lambda: passed.server.statistics.closed[CloseReason.UPSTREAM] > 0)
        for broker in passed.brokers:
            await broker.start()


async def test_requests_go_to_brokers_that_do_not_lag() -> None:
    async with passing((3, 9), (3, 9)) as passed, contextlib.AsyncExitStack() as stack:
        passed.lagging = [1]
        for number in range(4):
            client = await stack.enter_async_context(connected(passed.server.port))
            assert (await ask(client, frame_of(3, 1, number)))[4:] == b"of 2"


async def test_a_client_leaves_a_broker_that_begins_to_lag_and_does_not_notice() -> None:
    async with passing((3, 9), (3, 9)) as passed, connected(passed.server.port) as client:
        (first,) = (await ask(client, frame_of(3, 1, 1)))[-1:]
        passed.lagging = [first - ord("0")]
        (second,) = (await ask(client, frame_of(3, 1, 2)))[-1:]
        assert {first, second} == set(b"12")


async def test_a_broker_that_lags_is_asked_when_no_other_can_be_reached() -> None:
    async with passing((3, 9), (3, 9)) as passed, connected(passed.server.port) as client:
        passed.lagging = [1]
        await passed.brokers[1].stop()
        assert (await ask(client, frame_of(3, 1, 1)))[4:] == b"of 1"
        await passed.brokers[1].start()


async def test_stopping_the_server_closes_the_connections_to_brokers() -> None:
    async with passing() as passed, connected(passed.server.port) as client:
        await ask(client, frame_of(3, 1, 1))
        await passed.server.stop()
        await until(lambda: passed.brokers[0].open == 0)
