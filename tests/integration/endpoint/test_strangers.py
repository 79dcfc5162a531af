"""A client that may do nothing sends what is expensive to read, over many connections."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from regent.protocol.primitives import uvarint
from regent.protocol.served_apis import ALTER_PARTITION, CREATE_TOPICS
from tests.support.cluster import Cluster, regent
from tests.support.kafka_client import connected

pytestmark = pytest.mark.integration

STRANGER = "127.0.0.2"
"""An address of this machine that no broker has."""

CONNECTIONS = 100
TOPICS = 5
FRAME_BYTES = 31_000


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


class Flood:
    """A frame over many connections, on each of them again whenever it was answered."""

    def __init__(self, port: int, frame: bytes) -> None:
        self.asked = 0
        self.stop = Event()
        self._port = port
        self._frame = frame

    async def run(self) -> None:
        asking = [asyncio.create_task(self._ask()) for _ in range(CONNECTIONS)]
        await asyncio.to_thread(self.stop.wait)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _ask(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with connected(self._port, local=STRANGER) as client:
                while not self.stop.is_set():
                    client.send_frame(self._frame)
                    self.asked += 1
                    await client.frame()


@pytest.mark.parametrize("frame", [isr_changes(), topics()], ids=["AlterPartition", "CreateTopics"])
def test_a_stranger_cannot_keep_the_controller_from_its_work(
    cluster: Cluster, frame: bytes
) -> None:
    """Each topic would wait for its leader as long as the flood goes on."""
    with regent(cluster) as process, ThreadPoolExecutor(1) as beside:
        process.wait_until_active()
        status = process.status()
        assert status is not None
        (address,) = status["endpoint"]["served"].values()
        flood = Flood(int(address.rpartition(":")[2]), frame)
        flooding = beside.submit(asyncio.run, flood.run())
        try:
            cluster.wait(
                lambda: flood.asked,
                "all connections to have asked",
                until=lambda asked: asked >= CONNECTIONS,
            )
            for number in range(TOPICS):
                topic = f"beside-{process.port}-{number}"
                cluster.znodes.create_topic(topic, {0: [1]})
                cluster.wait_for_leader(topic, 1)
            cluster.wait(
                lambda: flood.asked,
                "the flood to go on",
                until=lambda asked: asked > CONNECTIONS,
            )
        finally:
            flood.stop.set()
            flooding.result()
