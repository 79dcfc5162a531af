"""Questions to brokers over real sockets: what is sent, what is answered, what goes wrong."""

from __future__ import annotations

import asyncio
import struct

import pytest

from regent.model.cluster import Broker, EndPoint
from regent.model.errors import BrokerQuestionError
from regent.model.partition import TopicPartition
from regent.network.broker_questions import BrokerQuestions
from regent.network.settings import ChannelSettings
from regent.protocol import describe_log_dirs
from regent.protocol.framing import API_VERSIONS_KEY, RequestHeader, request_header
from regent.protocol.replica_sizes import encode_replica_sizes_request
from tests.support.raw_broker import NO_BYTES, RawBroker, answer_of, raw_brokers

ORDERS = TopicPartition("orders", 3)


def log_dirs(size: int) -> bytes:
    """Answer to DescribeLogDirs: one directory with one replica."""
    replica = struct.pack(">iqq?", 3, size, 0, False)
    topic = b"\x00\x06orders" + struct.pack(">i", 1) + replica
    return struct.pack(">iih", 0, 1, 0) + b"\x00\x02/d" + struct.pack(">i", 1) + topic


def answer_with(broker: RawBroker, body: bytes | None) -> None:
    """Let it answer questions; None: it breaks off."""

    def answer(header: RequestHeader, frame: bytes) -> bytes | None:
        if header.api_key == API_VERSIONS_KEY:
            return broker.listing(header)
        return None if body is None else answer_of(header, body)

    broker.answer = answer


def registration(broker: RawBroker) -> Broker:
    return broker.as_upstream().broker


def questions() -> BrokerQuestions:
    return BrokerQuestions(client_id="9", settings=ChannelSettings())


async def test_a_broker_is_asked_again_on_the_same_connection() -> None:
    async with raw_brokers((2, 4), (1, 1)) as (newer, older):
        asking = questions()
        for broker, version in ((newer, 1), (older, 0)):
            broker.versions = {
                **broker.versions,
                describe_log_dirs.API_KEY: broker.versions[describe_log_dirs.API_KEY]._replace(
                    highest=version
                ),
            }
            for size in (5, 2**40):
                answer_with(broker, log_dirs(size))
                said = await asking.replica_sizes(registration(broker), {ORDERS})
                assert said.sizes == {ORDERS: size}
            assert broker.accepted == 1
            header = request_header(broker.frames[-1])
            assert (header.api_key, header.api_version) == (35, version)
            assert broker.frames[-1].endswith(encode_replica_sizes_request({ORDERS}))
        asking.close()


async def test_another_broker_is_not_asked_in_the_place_of_the_one_that_is_meant() -> None:
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        answer_with(broker, log_dirs(5))
        broker.told_id = 7
        with pytest.raises(BrokerQuestionError, match="another broker answers there"):
            await asking.replica_sizes(registration(broker), {ORDERS})
        assert all(request_header(f).api_key == API_VERSIONS_KEY for f in broker.frames)
        asking.close()


async def test_questions_to_one_broker_wait_for_each_other() -> None:
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        answer_with(broker, log_dirs(7))
        many = (asking.replica_sizes(registration(broker), {ORDERS}) for _ in range(20))
        said = await asyncio.gather(*many)
        assert [each.sizes[ORDERS] for each in said] == [7] * 20
        assert broker.accepted == 1
        asking.close()


async def test_after_an_error_there_is_another_connection() -> None:
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        for body, text in (
            (None, "ConnectionLostError"),
            (b"\x00", "answers DescribeLogDirs with nonsense"),
            (struct.pack(">ii", 0, 0), "may not describe the cluster"),
        ):
            answer_with(broker, body)
            with pytest.raises(BrokerQuestionError, match=text):
                await asking.replica_sizes(registration(broker), {ORDERS})
        answer_with(broker, log_dirs(7))
        assert (await asking.replica_sizes(registration(broker), {ORDERS})).sizes == {ORDERS: 7}
        restarted = broker.as_upstream(epoch=2).broker
        accepted = broker.accepted
        await asking.replica_sizes(restarted, {ORDERS})
        assert broker.accepted == accepted + 1, "another life of the broker"
        asking.close()


async def test_the_smallest_request_says_how_long_a_broker_takes() -> None:
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        answer_with(broker, None)
        began = asyncio.get_running_loop().time()
        took = await asking.round_trip_s(registration(broker))
        assert 0 < took < asyncio.get_running_loop().time() - began
        headers = [request_header(frame) for frame in broker.frames]
        assert {(each.api_key, each.api_version) for each in headers} == {(API_VERSIONS_KEY, 0)}
        assert (len(headers), broker.accepted) == (4, 1), "to set it up, and three that are timed"
        asking.close()


async def test_a_question_that_is_cancelled_leaves_no_answer_for_the_next() -> None:
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        answer_with(broker, log_dirs(7))
        await asking.replica_sizes(registration(broker), {ORDERS})
        silent = asyncio.Event()

        def never(_: RequestHeader, frame: bytes) -> bytes:
            silent.set()
            return NO_BYTES

        broker.answer = never
        waiting = asyncio.create_task(asking.replica_sizes(registration(broker), {ORDERS}))
        await silent.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        answer_with(broker, log_dirs(8))
        assert (await asking.replica_sizes(registration(broker), {ORDERS})).sizes == {ORDERS: 8}
        asking.close()


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def coordinator(
    broker: RawBroker, groups: dict[str, tuple[bool, int]], *, directories: bytes, code: int = 0
) -> None:
    """Let it coordinate groups.

    Args:
        groups: Whether a member is subscribed to ``orders``, and the committed offset.
        directories: What it answers to DescribeLogDirs.
        code: What it answers to OffsetFetch.
    """

    def answer(header: RequestHeader, frame: bytes) -> bytes:
        match header.api_key:
            case 18:
                return broker.listing(header)
            case 35:
                body = directories
            case 16:
                listed = b"".join(text(name) + text("consumer") for name in groups)
                body = struct.pack(">hi", 0, len(groups)) + listed
            case 15:
                body = struct.pack(">i", len(groups)) + b"".join(
                    b"\0\0"
                    + text(name)
                    + text("Stable")
                    + text("consumer")
                    + text("range")
                    + struct.pack(">i", 1)
                    + text("m")
                    + text("c")
                    + text("h")
                    + struct.pack(">i", 14)
                    + struct.pack(">hi", 0, 1)
                    + text("orders" if subscribed else "others")
                    + struct.pack(">i", 0)
                    for name, (subscribed, _) in groups.items()
                )
            case 9:
                name = next(each for each in groups if text(each) in frame)
                offset = struct.pack(">iq", 0, groups[name][1]) + text("") + struct.pack(">h", code)
                body = struct.pack(">i", 1) + text("orders") + struct.pack(">i", 1) + offset
            case other:
                raise AssertionError(f"nobody asks for API {other}")
        return answer_of(header, body)

    broker.answer = answer


async def test_groups_use_a_topic_by_offsets_or_by_a_subscription() -> None:
    groups = {"idle": (False, -1), "late": (False, 0), "live": (True, -1), "both": (True, 9)}
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        coordinator(broker, groups, directories=log_dirs(1))
        found = await asking.groups_using(registration(broker), "orders", (0,))
        assert found == {
            "late": "committed offsets",
            "live": "subscribed",
            "both": "subscribed",
        }
        coordinator(broker, {}, directories=log_dirs(1))
        assert await asking.groups_using(registration(broker), "orders", (0,)) == {}
        asking.close()


async def test_who_is_not_told_all_groups_is_told_none() -> None:
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        coordinator(broker, {}, directories=struct.pack(">ii", 0, 0))
        with pytest.raises(BrokerQuestionError, match="may not describe the cluster"):
            await asking.groups_using(registration(broker), "orders", (0,))
        coordinator(broker, {"a": (False, -1)}, directories=log_dirs(1), code=30)
        with pytest.raises(BrokerQuestionError, match="GROUP_AUTHORIZATION_FAILED for group a"):
            await asking.groups_using(registration(broker), "orders", (0,))
        asking.close()


async def test_records_since_a_time() -> None:
    async with raw_brokers((3, 9)) as (broker,):
        asking = questions()
        found = struct.pack(">ihqq", 0, 0, -1, -1) + struct.pack(">ihqq", 3, 0, 5, 7)
        answer_with(broker, struct.pack(">i", 1) + text("orders") + struct.pack(">i", 2) + found)
        since = asking.records_since(registration(broker), "orders", (0, 3), since_ms=4)
        assert await since == {3}
        header = request_header(broker.frames[-1])
        assert (header.api_key, header.api_version) == (2, 1)
        answer_with(broker, b"")
        with pytest.raises(BrokerQuestionError, match="answers ListOffsets with nonsense"):
            await asking.records_since(registration(broker), "orders", (0, 3), since_ms=4)
        asking.close()


async def test_why_nobody_answers_is_said() -> None:
    async with raw_brokers((3, 9)) as (stopped,):
        nowhere = registration(stopped)
    secret = Broker(1, 2, (EndPoint("CLIENTS", "SASL_SSL", "127.0.0.1", 9092),))
    asking = questions()
    with pytest.raises(BrokerQuestionError, match=r"CLIENTS://127.0.0.1:\d+: ConnectionRefused"):
        await asking.replica_sizes(nowhere, {ORDERS})
    with pytest.raises(BrokerQuestionError, match="no listener that Regent's settings can use"):
        await asking.replica_sizes(secret, {ORDERS})
    async with raw_brokers((3, 9)) as (broker,):
        broker.versions = {18: broker.versions[18]}
        answer_with(broker, log_dirs(1))
        with pytest.raises(BrokerQuestionError, match="versions 0 to 1 of API 35"):
            await asking.replica_sizes(registration(broker), {ORDERS})
    asking.close()
