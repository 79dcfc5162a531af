"""What is encoded ahead does not hold up requests that are on their way."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator

import pytest

from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.network import broker_channel
from regent.protocol.control_codec import encode_ahead
from regent.protocol.control_requests import PartitionUpdates
from regent.protocol.partition_state import PartitionState
from sandbox.waiting import DEADLINE_S
from tests.support.stub_broker import LEADER_AND_ISR, Received, StubBroker
from tests.unit.network.open_channels import batch, channels

TOPICS = 16_000
"""With their names that is some 4 MB: 16 slices, with turns of the loop in between."""
FEW = 2_000
"""Two slices."""
WAIT_S = 10.0


class Elsewhere:
    """Stub brokers in a thread, which read while the loop of the channels stands still."""

    def __init__(self, count: int) -> None:
        self.stubs = [StubBroker(broker_id, decode=False) for broker_id in range(1, count + 1)]
        self.has_leadership = [threading.Event() for _ in self.stubs]
        for stub, event in zip(self.stubs, self.has_leadership, strict=True):
            stub.on_request = lambda received, event=event: self._on_request(received, event)
            stub.hold.clear()
        self._listens = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))
        self._end = asyncio.Event()

    @staticmethod
    def _on_request(received: Received, event: threading.Event) -> None:
        if received.api_key == LEADER_AND_ISR:
            event.set()

    async def _run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for stub in self.stubs:
                await stack.enter_async_context(stub)
            self._listens.set()
            await self._end.wait()

    def answer(self) -> None:
        """From now on."""
        for stub in self.stubs:
            self._loop.call_soon_threadsafe(stub.hold.set)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        assert self._listens.wait(WAIT_S)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()
            self._loop.close()


@pytest.mark.parametrize("topics", [(FEW, FEW), (TOPICS, TOPICS), (FEW, TOPICS), (TOPICS, FEW)])
async def test_metadata_is_later(topics: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Elsewhere(2)
    had_leadership: list[bool] = []
    is_encoded = asyncio.Event()

    def encode(updates: PartitionUpdates, version: int) -> None:
        # Nothing is sent meanwhile: what does not arrive now had not left.
        if not is_encoded.is_set():
            had_leadership.extend(event.wait(WAIT_S) for event in brokers.has_leadership)
        encode_ahead(updates, version)
        is_encoded.set()

    monkeypatch.setattr(broker_channel, "encode_ahead", encode)
    with brokers.running():
        stubs = brokers.stubs
        ids = tuple(stub.broker_id for stub in stubs)
        partitions = {
            TopicPartition(f"{number:0240}", 0): PartitionState(
                0, LeaderAndIsr(1, 0, ids, 5, 3), ReplicaAssignment(ids)
            )
            for number in range(TOPICS)
        }
        leadership = {
            broker_id: dict.fromkeys(itertools.islice(partitions, count), True)
            for broker_id, count in zip(ids, topics, strict=True)
        }
        requests = batch(*stubs, partitions=partitions, leader_and_isr=leadership, stop_replica={})
        async with channels(*(stub.registration for stub in stubs)) as (manager, responses):
            assert await manager.inter_broker_protocol() == (3, 9)
            manager.send(requests)
            await asyncio.wait_for(is_encoded.wait(), DEADLINE_S)
            assert had_leadership == [True, True]
            brokers.answer()
            await responses.wait_for(4)
