"""A channel whose broker is slow, fails, or comes back."""

from __future__ import annotations

import pytest

from regent.network.settings import ChannelSettings
from tests.support.stub_broker import (
    Fault,
    StubBroker,
    stub_brokers,
)
from tests.support.waiting import until
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
    """Each time through another connection. On a busy machine, more than one answer is late."""
    settings = ChannelSettings(response_timeout=0.05, retry_delay=0.01)
    async with StubBroker(1) as stub:
        stub.faults.append(Fault.SILENCE)
        async with channels(stub.registration, settings=settings) as (manager, responses):
            manager.send(only_update_metadata(stub))
            await responses.wait_for(1)
    connections = [received.connection for received in stub.received]
    assert connections == list(range(1, len(connections) + 1))
    assert len(connections) > 1


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
        await until(lambda: not manager._channels[1].is_connected, "the lost connection")
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
