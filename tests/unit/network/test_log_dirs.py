"""Brokers that do not answer are named with the reason, and keep nobody else from being asked."""

from __future__ import annotations

import asyncio

from regent.model.cluster import Broker, EndPoint
from regent.network.log_dirs import ask_log_dirs
from regent.network.settings import ChannelSettings
from tests.support.stub_broker import StubBroker


def broker(broker_id: int, *endpoints: EndPoint) -> Broker:
    return Broker(broker_id, broker_id, endpoints)


async def test_why_a_broker_does_not_answer_is_said() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
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


async def test_another_broker_does_not_tell_in_the_place_of_the_one_that_is_meant() -> None:
    async with StubBroker(1) as stub:
        answers = await ask_log_dirs([broker(2, stub.endpoint)], ChannelSettings())
    assert "another broker answers there" in str(answers[2])
