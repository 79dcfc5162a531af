"""A channel whose broker is slow, fails, or comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.network.settings import ChannelSettings
from regent.protocol.control_requests import StopReplicaPartition
from regent.protocol.metadata_updates import MAX_PARTITIONS
from regent.protocol.partition_state import PartitionState
from tests.support.stub_broker import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    Fault,
    StubBroker,
    stub_brokers,
)
from tests.unit.network.open_channels import batch, channels, leader_epochs, only_update_metadata


@pytest.mark.parametrize(
    "fault",
    [
        Fault.CLOSE,
        Fault.GARBAGE,
        Fault.TRAILING,
        Fault.WRONG_CORRELATION,
        Fault.TWICE,
        Fault.HUGE,
    ],
)
async def test_after_a_fault_the_same_request_is_sent_on_a_new_connection(fault: Fault) -> None:
    async with StubBroker(1) as stub:
        stub.hold.clear()
        stub.faults.extend([fault, fault])
        async with channels(stub.registration) as (manager, responses):
            manager.send(only_update_metadata(stub, number=0))
            await stub.wait_for(1)
            for number in (1, 2):
                manager.send(only_update_metadata(stub, number=number))
            stub.hold.set()
            await responses.wait_for(2)
            assert manager.metrics()[1].answered == 2
    if fault is Fault.TWICE:
        # The first answer of the two may be taken before the second one arrives.
        assert sorted(set(leader_epochs(stub))) == [0, 2]
        return
    assert leader_epochs(stub) == [0, 0, 0, 2]
    assert [received.connection for received in stub.received] == [1, 2, 3, 3]
    assert len(responses.all) == 2


async def test_a_broker_that_does_not_answer_in_time_is_asked_again() -> None:
    settings = ChannelSettings(response_timeout=0.05, retry_delay=0.01)
    async with StubBroker(1) as stub:
        stub.faults.append(Fault.SILENCE)
        async with channels(stub.registration, settings=settings) as (manager, responses):
            manager.send(only_update_metadata(stub))
            await responses.wait_for(1)
    assert [received.connection for received in stub.received] == [1, 2]


async def test_a_broker_that_restarts_gets_the_newest_of_what_it_missed() -> None:
    async with StubBroker(1) as stub, channels(stub.registration) as (manager, responses):
        manager.send(only_update_metadata(stub, number=0))
        await responses.wait_for(1)
        await stub.stop()
        for number in (1, 2, 3):
            manager.send(only_update_metadata(stub, number=number))
        await stub.start()
        await responses.wait_for(2)
    assert leader_epochs(stub) == [0, 3]


async def test_an_idle_connection_that_the_broker_closed_costs_no_failure() -> None:
    async with StubBroker(1) as stub, channels(stub.registration) as (manager, responses):
        manager.send(only_update_metadata(stub))
        await responses.wait_for(1)
        await stub.stop()
        await stub.start()
        await asyncio.sleep(0)  # the end of the stream is noticed when the loop polls
        manager.send(only_update_metadata(stub))
        await responses.wait_for(2)
        assert manager.metrics()[1].failures == 0


async def test_one_request_is_in_flight_at_a_time() -> None:
    async with StubBroker(1) as stub:
        stub.hold.clear()
        async with channels(stub.registration) as (manager, responses):
            manager.send(only_update_metadata(stub, number=0))
            await stub.wait_for(1)
            manager.send(batch(stub, number=1))
            metrics = manager.metrics()[1]
            assert (metrics.queued, metrics.sent, metrics.answered) == (4, 1, 0)
            assert manager.queue_sizes() == {1: 4}
            assert len(stub.received) == 1
            stub.hold.set()
            await responses.wait_for(4)
            metrics = manager.metrics()[1]
    assert (metrics.queued, metrics.sent, metrics.answered) == (0, 4, 4)
    assert leader_epochs(stub) == [0, 1]


async def test_a_stuck_broker_delays_only_itself() -> None:
    async with stub_brokers(2) as stubs:
        stuck, healthy = stubs
        stuck.hold.clear()
        async with channels(*(stub.registration for stub in stubs)) as (manager, responses):
            for number in range(10):
                manager.send(only_update_metadata(*stubs, number=number))
                await stuck.wait_for(1)
                await responses.wait_for(number + 1)
            assert {response.broker_id for response in responses.all} == {healthy.broker_id}
            stuck.hold.set()
            await responses.wait_for(12)
    assert leader_epochs(healthy) == list(range(10))
    assert leader_epochs(stuck) == [0, 9]


async def test_what_waits_for_a_stuck_broker_does_not_grow_with_time() -> None:
    async with StubBroker(1) as stub:
        stub.hold.clear()
        async with channels(stub.registration) as (manager, responses):
            manager.send(only_update_metadata(stub, number=0))
            await stub.wait_for(1)
            sizes = []
            for number in range(1, 5_001):
                manager.send(batch(stub, number=number))
                sizes.append(manager.queue_sizes()[1])
            # In flight, LeaderAndIsr, StopReplica, and updates until they are merged.
            assert max(sizes) <= 3 + 1_000 + 2
            stub.hold.set()
            await responses.wait_for(4)
    assert leader_epochs(stub) == [0, 5_000]


async def test_only_the_first_leader_and_isr_is_sent_whole_whatever_its_size() -> None:
    partitions = [TopicPartition("large", n) for n in range(MAX_PARTITIONS + 1)]
    leadership, assignment = LeaderAndIsr(1, 0, (1,), 5, 3), ReplicaAssignment((1,))
    states = {tp: PartitionState(tp.partition, leadership, assignment) for tp in partitions}
    large: dict[str, Any] = {
        "partitions": states,
        "leader_and_isr": {1: dict.fromkeys(partitions, False)},
        "stop_replica": {1: dict.fromkeys(partitions, StopReplicaPartition(-2, True))},
    }
    async with (
        StubBroker(1, decode=False) as stub,
        channels(stub.registration) as (manager, responses),
    ):
        manager.send(batch(stub, **(large | {"stop_replica": {}})))
        await responses.wait_for(2)
        manager.send(batch(stub, **(large | {"leader_and_isr": {}})))
        await responses.wait_for(5)
        manager.send(batch(stub, **(large | {"stop_replica": {}})))
        await responses.wait_for(8)
    assert [received.api_key for received in stub.received] == [
        *(LEADER_AND_ISR, UPDATE_METADATA),
        *(UPDATE_METADATA, STOP_REPLICA, STOP_REPLICA),
        *(LEADER_AND_ISR, LEADER_AND_ISR, UPDATE_METADATA),
    ]
