"""Many bad peers beside one that is honest."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Iterator

import pytest

from regent.network.server_statistics import CloseReason
from sandbox import wait_until_async
from tests.support.hostile_peers import (
    attack,
    decode_all,
    fuzzed_frames,
    server_for_hostile_peers,
)

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
        await wait_until_async(
            lambda: (statistics.connections, statistics.buffered_bytes) == (0, 0),
            describe="every connection closed",
            timeout_s=60,
        )
        assert statistics.requests_in_progress == 0
        assert statistics.accepted == sum(statistics.closed.values()) > CONNECTIONS
        assert statistics.closed[CloseReason.MALFORMED] > 0
        assert statistics.closed[CloseReason.UNSUPPORTED] > 0
        assert statistics.closed[CloseReason.FAILED] == 0


def test_a_fuzzed_frame_is_a_request_or_a_decode_error() -> None:
    assert 0 < decode_all(itertools.islice(fuzzed_frames(1), 5_000)) < 5_000
