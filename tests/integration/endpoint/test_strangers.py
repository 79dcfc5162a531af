"""A client that may do nothing sends what is expensive to read, over many connections."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from regent.protocol.primitives import uvarint
from regent.protocol.served_apis import ALTER_PARTITION, CREATE_TOPICS
from tests.integration.controller.cluster import Cluster, cluster_of, regent
from tests.support.kafka_client import connected

pytestmark = pytest.mark.integration

STRANGER = "127.0.0.2"
"""An address of this machine that no broker has."""

CONNECTIONS = 100
TOPICS = 5
FRAME_BYTES = 31_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of("3.9.1", brokers=1, inter_broker_protocol=None) as started:
        started.wait_for_a_broker_as_controller()
        yield started


def _head(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1) + b"\0"


def isr_changes() -> bytes:
    """AlterPartition, version 0: of as many topics without a name as fit."""
    count = FRAME_BYTES // 3
    topics = uvarint(count + 1) + b"\1\1\0" * count
    return _head(ALTER_PARTITION.key, 0) + struct.pack(">iq", 1, 1) + topics + b"\0"


def topics() -> bytes:
    """CreateTopics, version 5: likewise."""
    topic = b"\1" + struct.pack(">ih", 1, 1) + b"\1\1\0"
    count = FRAME_BYTES // len(topic)
    return (
        _head(CREATE_TOPICS.key, 5)
        + uvarint(count + 1)
        + topic * count
        + struct.pack(">i", 1_000)
        + b"\0\0"
    )


async def _ask_on(port: int, frame: bytes, stop: Event) -> None:
    """Send a frame again whenever it was answered."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        async with connected(port, local=STRANGER) as client:
            while not stop.is_set():
                client.send_frame(frame)
                await client.frame()


async def _flood(port: int, frame: bytes, stop: Event) -> None:
    asking = [asyncio.create_task(_ask_on(port, frame, stop)) for _ in range(CONNECTIONS)]
    await asyncio.to_thread(stop.wait)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


@pytest.mark.parametrize("frame", [isr_changes(), topics()], ids=["AlterPartition", "CreateTopics"])
def test_a_stranger_cannot_keep_the_controller_from_its_work(
    cluster: Cluster, frame: bytes
) -> None:
    with regent(cluster) as process, ThreadPoolExecutor(1) as beside:
        process.wait_until_active()
        status = process.status()
        assert status is not None
        (address,) = status["endpoint"]["served"].values()
        stop = Event()
        flood = beside.submit(asyncio.run, _flood(int(address.rpartition(":")[2]), frame, stop))
        try:
            time.sleep(3)  # the first requests have cost nothing before
            began = time.monotonic()
            for number in range(TOPICS):
                topic = f"beside-{process.port}-{number}"
                cluster.znodes.create_topic(topic, {0: [1]})
                cluster.wait_for_leader(topic, 1)
            took_s = time.monotonic() - began
            assert not flood.done()
        finally:
            stop.set()
            flood.result()
        # A single one takes as long as the flood, where that is read whenever it comes.
        assert took_s < 60
