"""Open channels to stub brokers, and batches to send through them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.settings import ChannelSettings
from regent.protocol.control_requests import ControlRequests, ControlResponse, StopReplicaPartition
from regent.protocol.partition_state import PartitionState
from sandbox.waiting import DEADLINE_S
from tests.support.stub_broker import UPDATE_METADATA, StubBroker, stub_brokers

CONTROLLER_ID = 1_000_000_007
FAST = ChannelSettings(
    connect_timeout=30.0, response_timeout=60.0, retry_delay=0.01, max_retry_delay=0.02
)
TP = TopicPartition("topic", 0)


class Responses:
    """Collects responses and lets a test wait for them."""

    def __init__(self) -> None:
        self.all: list[ControlResponse] = []
        self._arrived = asyncio.Event()

    def __call__(self, response: ControlResponse) -> None:
        self.all.append(response)
        self._arrived.set()

    async def wait_for(self, count: int) -> list[ControlResponse]:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.all) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.all


@contextlib.asynccontextmanager
async def channels(
    *registrations: Broker,
    settings: ChannelSettings = FAST,
    may_send: Callable[[], bool] = lambda: True,
    on_response: Callable[[ControlResponse], None] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[ControllerChannelManager, Responses]]:
    """A manager with open channels. Ending it fails the test if a channel ended by a defect."""
    responses = Responses()
    failures: list[tuple[int, BaseException]] = []
    manager = ControllerChannelManager(
        controller_id=CONTROLLER_ID,
        settings=settings,
        may_send=may_send,
        on_response=on_response or responses,
        on_failure=lambda broker, _, error: failures.append((broker.broker_id, error)),
        **options,
    )
    manager.update(opened=registrations)
    try:
        yield manager, responses
    finally:
        manager.close_all()
        await manager.wait_closed()
    assert failures == []


@contextlib.asynccontextmanager
async def brokers_with_channels(
    count: int, **options: Any
) -> AsyncIterator[tuple[list[StubBroker], ControllerChannelManager, Responses]]:
    """Stub brokers 1, 2, ... with an open channel to each."""
    async with (
        stub_brokers(count) as stubs,
        channels(*(stub.registration for stub in stubs), **options) as (manager, responses),
    ):
        yield stubs, manager, responses


def batch(*stubs: StubBroker, number: int = 0, **changes: Any) -> ControlRequests:
    """One partition, led by the first broker; every kind of request to every broker."""
    brokers = {stub.broker_id: stub.registration for stub in stubs}
    state = LeaderAndIsr(stubs[0].broker_id, number, tuple(brokers), 5, 3)
    stops = {TopicPartition("old", 0): StopReplicaPartition(2, True)}
    values: dict[str, Any] = {
        "controller_id": CONTROLLER_ID,
        "controller_epoch": 5,
        "brokers": brokers,
        "topic_ids": {},
        "partitions": {TP: PartitionState(TP.partition, state, ReplicaAssignment(tuple(brokers)))},
        "offline_replicas": {},
        "leader_and_isr": {broker_id: {TP: True} for broker_id in brokers},
        "update_metadata_receivers": tuple(brokers),
        "deleted_partitions": frozenset(),
        "stop_replica": dict.fromkeys(brokers, stops),
    }
    return ControlRequests(**(values | changes))


def only_update_metadata(*stubs: StubBroker, number: int = 0) -> ControlRequests:
    return batch(*stubs, number=number, leader_and_isr={}, stop_replica={})


def leader_epochs(stub: StubBroker) -> list[int]:
    """The number of the batch behind each UpdateMetadata that the stub got."""
    return [
        received.request.topic_states[0].partition_states[0].leader_epoch
        for received in stub.received
        if received.api_key == UPDATE_METADATA
    ]


def two_listeners(
    first: StubBroker, second: StubBroker, *, names: tuple[str, str] = ("PUBLIC", "INTERNAL")
) -> Broker:
    return Broker(
        broker_id=1,
        epoch=1001,
        endpoints=(
            EndPoint(names[0], "PLAINTEXT", "127.0.0.1", first.port),
            EndPoint(names[1], "PLAINTEXT", "127.0.0.1", second.port),
        ),
        registration_version=5,
    )


DEAD_PORT: Final = 1
"""Nobody listens there. A port that was free a moment ago may be another test's by now."""
