"""Many bad clients between an honest one and bad brokers, and what they leave behind."""

from __future__ import annotations

import contextlib
import itertools
import resource
from collections.abc import Iterator

import pytest

from regent.network.server_statistics import CloseReason
from regent.protocol.primitives import DecodeError
from regent.protocol.server_codec import ServerCodec
from tests.support.hostile_peers import BadBroker, Server, attack, fuzzed_frames
from tests.support.served_requests import ALL_APIS
from tests.support.waiting import until

CONNECTIONS = 250


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of each connection are files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10_000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_fuzzed_frame_is_a_request_or_a_decode_error() -> None:
    codec = ServerCodec(ALL_APIS)
    read = 0
    for frame in itertools.islice(fuzzed_frames(1), 5_000):
        with contextlib.suppress(DecodeError):
            codec.decode(frame)
            read += 1
    assert 0 < read < 5_000


@pytest.mark.slow
@pytest.mark.usefixtures("many_files")
async def test_bad_clients_and_bad_brokers_leave_nothing_behind() -> None:
    async with contextlib.AsyncExitStack() as stack:
        brokers = [BadBroker(number, number) for number in (1, 2, 3)]
        for broker in brokers:
            await broker.start()
            stack.push_async_callback(broker.stop)
        server = Server(brokers, connections=CONNECTIONS)
        kafka_server = await stack.enter_async_context(server.running())
        asked = await attack(
            kafka_server.port, frames=500, connections=CONNECTIONS, seed=1, at_once=20
        )
        assert asked > 0
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
        assert statistics.accepted == sum(statistics.closed.values()) > CONNECTIONS
        assert statistics.requests["Metadata"] > 0
        assert statistics.closed[CloseReason.UPSTREAM] > 0
        assert statistics.closed[CloseReason.MALFORMED] > 0
        assert statistics.closed[CloseReason.UNSUPPORTED] > 0
        assert statistics.closed[CloseReason.FAILED] == 0
        await until(lambda: all(broker.open == 0 for broker in brokers), "the brokers to be left")
