"""Questions to brokers over real sockets: what is sent, what is answered, what goes wrong."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator

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


@pytest.fixture
async def asking() -> AsyncIterator[BrokerQuestions]:
    questions = BrokerQuestions(client_id="9", settings=ChannelSettings())
    yield questions
    questions.close()


@pytest.fixture
async def broker() -> AsyncIterator[RawBroker]:
    async with raw_brokers((3, 9)) as (broker,):
        yield broker


async def test_a_broker_is_asked_again_on_the_same_connection(asking: BrokerQuestions) -> None:
    async with raw_brokers((2, 4), (1, 1)) as (newer, older):
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


async def test_another_broker_is_not_asked_in_the_place_of_the_one_that_is_meant(
    broker: RawBroker, asking: BrokerQuestions
) -> None:
    answer_with(broker, log_dirs(5))
    broker.told_id = 7
    with pytest.raises(BrokerQuestionError, match="another broker answers there"):
        await asking.replica_sizes(registration(broker), {ORDERS})
    assert all(request_header(f).api_key == API_VERSIONS_KEY for f in broker.frames)


async def test_questions_to_one_broker_wait_for_each_other(
    broker: RawBroker, asking: BrokerQuestions
) -> None:
    answer_with(broker, log_dirs(7))
    many = (asking.replica_sizes(registration(broker), {ORDERS}) for _ in range(20))
    said = await asyncio.gather(*many)
    assert [each.sizes[ORDERS] for each in said] == [7] * 20
    assert broker.accepted == 1


async def test_after_an_error_there_is_another_connection(
    broker: RawBroker, asking: BrokerQuestions
) -> None:
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


async def test_a_question_that_is_cancelled_leaves_no_answer_for_the_next(
    broker: RawBroker, asking: BrokerQuestions
) -> None:
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


async def test_why_nobody_answers_is_said(broker: RawBroker, asking: BrokerQuestions) -> None:
    async with raw_brokers((3, 9)) as (stopped,):
        nowhere = registration(stopped)
    secret = Broker(1, 2, (EndPoint("CLIENTS", "SASL_SSL", "127.0.0.1", 9092),))
    with pytest.raises(BrokerQuestionError, match=r"CLIENTS://127.0.0.1:\d+: ConnectionRefused"):
        await asking.replica_sizes(nowhere, {ORDERS})
    with pytest.raises(BrokerQuestionError, match="no listener that Regent's settings can use"):
        await asking.replica_sizes(secret, {ORDERS})
    broker.versions = {18: broker.versions[18]}
    answer_with(broker, log_dirs(1))
    with pytest.raises(BrokerQuestionError, match="versions 0 to 1 of API 35"):
        await asking.replica_sizes(registration(broker), {ORDERS})
