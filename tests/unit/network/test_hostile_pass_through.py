"""Bad clients and bad brokers, and what the server between them owes to nobody afterwards."""

from __future__ import annotations

import contextlib

import pytest

from regent.network.server_statistics import CloseReason
from sandbox import wait_until_async
from tests.support.hostile_pass_through import BadBroker, Server, attack

CONNECTIONS = 100


@pytest.mark.slow
async def test_bad_clients_and_bad_brokers_leave_nothing_behind() -> None:
    async with contextlib.AsyncExitStack() as stack:
        brokers = [BadBroker(number, number) for number in (1, 2, 3)]
        for broker in brokers:
            await broker.start()
            stack.push_async_callback(broker.stop)
        server = Server([broker.port for broker in brokers], connections=CONNECTIONS)
        kafka_server = await stack.enter_async_context(server.running())
        times = await attack(
            kafka_server.port, frames=300, connections=CONNECTIONS, seed=1, at_once=20
        )
        assert times.requests > 0
        statistics = kafka_server.statistics
        await wait_until_async(
            lambda: (
                not (
                    statistics.connections
                    or statistics.buffered_bytes
                    or statistics.upstream_connections
                )
            ),
            describe="every connection closed",
            timeout_s=60,
        )
        assert statistics.requests_in_progress == 0
        assert statistics.accepted == sum(statistics.closed.values()) > CONNECTIONS
        assert statistics.requests["Metadata"] > 0
        assert statistics.closed[CloseReason.UPSTREAM] > 0
        assert statistics.closed[CloseReason.FAILED] == 0
        await wait_until_async(
            lambda: all(broker.open == 0 for broker in brokers),
            describe="the brokers to be left",
            timeout_s=60,
        )
