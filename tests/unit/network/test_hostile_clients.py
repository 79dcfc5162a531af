"""Many bad clients, beside an honest one or in front of bad brokers, and what they leave behind."""

from __future__ import annotations

import contextlib
import itertools
import resource
from collections.abc import Iterator

import pytest

from regent.network.server_statistics import CloseReason
from tests.support import hostile_pass_through
from tests.support.hostile_pass_through import BadBroker, Server
from tests.support.hostile_peers import (
    attack,
    decode_all,
    fuzzed_frames,
    server_for_hostile_peers,
)
from tests.support.waiting import until

CONNECTIONS = 250


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of each connection are files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10_000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_an_honest_client_is_served_beside_many_bad_ones() -> None:
    async with server_for_hostile_peers(CONNECTIONS + 10) as server:
        times = await attack(server, frames=500, connections=CONNECTIONS, seed=1)
        assert times.requests > 0
        statistics = server.statistics
        await until(
            lambda: (statistics.connections, statistics.buffered_bytes) == (0, 0),
            "every connection closed",
        )
        assert statistics.requests_in_progress == 0
        assert statistics.accepted == sum(statistics.closed.values()) > CONNECTIONS
        assert statistics.closed[CloseReason.MALFORMED] > 0
        assert statistics.closed[CloseReason.UNSUPPORTED] > 0
        assert statistics.closed[CloseReason.FAILED] == 0


def test_a_fuzzed_frame_is_a_request_or_a_decode_error() -> None:
    assert 0 < decode_all(itertools.islice(fuzzed_frames(1), 5_000)) < 5_000


PASSED_ON_CONNECTIONS = 100


@pytest.mark.slow
async def test_bad_clients_and_bad_brokers_leave_nothing_behind() -> None:
    async with contextlib.AsyncExitStack() as stack:
        brokers = [BadBroker(number, number) for number in (1, 2, 3)]
        for broker in brokers:
            await broker.start()
            stack.push_async_callback(broker.stop)
        server = Server([broker.port for broker in brokers], connections=PASSED_ON_CONNECTIONS)
        kafka_server = await stack.enter_async_context(server.running())
        times = await hostile_pass_through.attack(
            kafka_server.port, frames=300, connections=PASSED_ON_CONNECTIONS, seed=1, at_once=20
        )
        assert times.requests > 0
        statistics = kafka_server.statistics
        await until(
            lambda: (
                not (
                    statistics.connections
                    or statistics.buffered_bytes
                    or statistics.upstream_connections
                )
            ),
            "every connection closed",
        )
        assert statistics.requests_in_progress == 0
        assert statistics.accepted == sum(statistics.closed.values()) > PASSED_ON_CONNECTIONS
        assert statistics.requests["Metadata"] > 0
        assert statistics.closed[CloseReason.UPSTREAM] > 0
        assert statistics.closed[CloseReason.FAILED] == 0
        await until(lambda: all(broker.open == 0 for broker in brokers), "the brokers to be left")
