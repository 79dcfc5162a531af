"""Brokers that do not tell about their logs are named with the reason; the others are asked."""

from __future__ import annotations

import struct

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import TopicPartition
from regent.network.log_dirs import ask_log_dirs
from regent.network.log_offsets import ask_log_offsets
from regent.network.settings import ChannelSettings
from regent.protocol.framing import API_VERSIONS_KEY, RequestHeader
from regent.protocol.list_offsets import EARLIEST
from tests.support.raw_broker import answer_of, raw_brokers
from tests.support.stub_broker import StubBroker


def broker(broker_id: int, *endpoints: EndPoint) -> Broker:
    return Broker(broker_id, broker_id, endpoints)


async def test_why_a_broker_does_not_answer_is_said() -> None:
    async with raw_brokers((3, 9)) as (hanging_up,):
        hanging_up.answer = lambda *_: None
        port = hanging_up.port
        answers = await ask_log_dirs(
            [
                broker(2, EndPoint("SECRET", "SASL_SSL", "127.0.0.1", port)),
                broker(1, EndPoint("PLAIN", "PLAINTEXT", "127.0.0.1", port)),
                broker(3, EndPoint("PLAIN", "PLAINTEXT", "127.0.0.1", 1)),
            ],
            ChannelSettings(),
        )
    assert list(answers) == [1, 2, 3]
    assert f"PLAIN://127.0.0.1:{port}: " in str(answers[1])
    assert answers[2] == "it has no listener that the settings for brokers (broker_*) can use"
    assert str(answers[3]).startswith("PLAIN://127.0.0.1:1: ConnectionRefusedError")


async def test_broker_with_another_id_does_not_tell() -> None:
    async with StubBroker(1) as stub:
        answers = await ask_log_dirs([broker(2, stub.endpoint)], ChannelSettings())
    assert "another broker answers there" in str(answers[2])


async def test_why_a_broker_does_not_answer_is_said_and_each_listener_is_tried() -> None:
    partitions = [TopicPartition("t", number) for number in range(3)]
    async with raw_brokers((3, 9)) as (hanging_up,):
        hanging_up.answer = lambda *_: None
        port = hanging_up.port
        listeners = tuple(EndPoint(name, "PLAINTEXT", "127.0.0.1", port) for name in ("A", "B"))
        offsets = await ask_log_offsets(
            [
                (Broker(1, 1, listeners), partitions),
                (Broker(2, 2, (EndPoint("S", "SSL", "127.0.0.1", port),)), partitions[:1]),
            ],
            ChannelSettings(),
        )
    assert (offsets.start, offsets.end) == ({}, {})
    hung_up, unreachable = offsets.unknown
    assert hung_up.startswith("broker 1 does not tell offsets of 3 partitions: ")
    assert hanging_up.accepted == 2
    assert unreachable == (
        "broker 2 does not tell offsets of 1 partitions: it has no listener that Regent's settings "
        "can use"
    )


async def test_a_partition_is_refused_once_whichever_of_its_ends_is_not_told() -> None:
    not_leader, offline = 6, 56
    errors = {True: (0, not_leader, offline), False: (0, not_leader, 0)}

    async with raw_brokers((2, 4)) as (broker,):

        def answer(header: RequestHeader, frame: bytes) -> bytes:
            if header.api_key == API_VERSIONS_KEY:
                return broker.listing(header)
            of_start = frame.endswith(struct.pack(">q", EARLIEST))
            listed = b"".join(
                struct.pack(">ihqq", partition, error, -1, 5 if of_start else 9)
                for partition, error in enumerate(errors[of_start])
            )
            return answer_of(header, b"\0\0\0\1" + b"\0\1t" + struct.pack(">i", 3) + listed)

        broker.answer = answer
        partitions = [TopicPartition("t", number) for number in range(3)]
        offsets = await ask_log_offsets(
            [(broker.as_upstream().broker, partitions)], ChannelSettings()
        )
    assert offsets.start == {partitions[0]: 5}
    assert offsets.end == {partitions[0]: 9, partitions[2]: 9}
    assert offsets.unknown == (
        "broker 1 answers ListOffsets of 1 partitions with KAFKA_STORAGE_ERROR",
        "broker 1 answers ListOffsets of 1 partitions with NOT_LEADER_OR_FOLLOWER",
    )
