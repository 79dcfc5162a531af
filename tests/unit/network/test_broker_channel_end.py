"""When a channel may not send, and how it ends."""

from __future__ import annotations

import asyncio

import pytest

from regent.model.cluster import Broker
from regent.model.partition import TopicPartition
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.protocol.control_requests import (
    ControlResponse,
    StopReplicaPartition,
)
from tests.support.stub_broker import Fault, StubBroker
from tests.support.waiting import DEADLINE_S, until
from tests.unit.network.open_channels import (
    CONTROLLER_ID,
    FAST,
    TP,
    Responses,
    batch,
    channels,
    leader_epochs,
    only_update_metadata,
)


async def test_the_term_is_known_to_whoever_allows_sending() -> None:
    terms: list[int | None] = []
    async with (
        StubBroker(1) as stub,
        channels(stub.registration, on_term=terms.append) as (manager, _),
    ):
        manager.update(opened=(), controller_epoch=5, epoch_zk_version=7)
        manager.close_all()
        assert terms == [None, 7, None]


async def test_the_fence_is_asked_before_a_repetition() -> None:
    answers = iter([True, True, False, True, True])  # again when it is encoded
    async with StubBroker(1) as stub:
        stub.faults.append(Fault.CLOSE)
        async with channels(stub.registration, may_send=lambda: next(answers)) as (
            manager,
            responses,
        ):
            manager.send(only_update_metadata(stub))
            await responses.wait_for(1)
    assert next(answers, None) is None
    assert len(stub.received) == 2


async def test_stopped_sending_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    may, waits, may_be = iter([True, False]), asyncio.Event(), asyncio.Event()

    async def wait_to_send(_: float) -> None:
        waits.set()
        await may_be.wait()

    def may_send() -> bool:
        return next(may, may_be.is_set())

    async with (
        StubBroker(1) as stub,
        channels(stub.registration, may_send=may_send, wait_to_send=wait_to_send) as (
            manager,
            responses,
        ),
    ):
        manager.send(only_update_metadata(stub))
        await asyncio.wait_for(waits.wait(), DEADLINE_S)
        assert stub.connections == 2  # of a large request, some may have left
        assert manager.problems() == {}
        may_be.set()
        await responses.wait_for(1)
        assert manager.metrics()[1].failures == 0
    assert len(stub.received) == 1
    assert "broker not reached" not in caplog.text


async def test_a_connection_lost_while_nothing_may_be_sent_is_replaced() -> None:
    waits, may_be = asyncio.Event(), asyncio.Event()

    async def wait_to_send(_: float) -> None:
        waits.set()
        await may_be.wait()

    async with (
        StubBroker(1) as stub,
        channels(stub.registration, may_send=may_be.is_set, wait_to_send=wait_to_send) as (
            manager,
            responses,
        ),
    ):
        manager.send(only_update_metadata(stub))
        await asyncio.wait_for(waits.wait(), DEADLINE_S)
        await stub.stop()
        await until(lambda: not manager._channels[1].is_connected, "the lost connection")
        await stub.start()
        may_be.set()
        await responses.wait_for(1)
        assert manager.metrics()[1].failures == 0


async def test_a_closed_channel_drops_what_waits_and_delivers_nothing() -> None:
    async with StubBroker(1) as stub:
        stub.hold.clear()
        async with channels(stub.registration) as (manager, responses):
            manager.send(only_update_metadata(stub, number=0))
            await stub.wait_for(1)
            manager.send(only_update_metadata(stub, number=1))
            manager.update(opened=(), closed=(1,))
            stub.hold.set()
            await manager.wait_closed()
            manager.send(only_update_metadata(stub, number=9))
            assert manager.metrics() == {}
            assert responses.all == []
    assert leader_epochs(stub) == [0]


async def test_a_bounced_broker_gets_a_fresh_channel() -> None:
    async with StubBroker(1) as stub:
        stub.hold.clear()
        async with channels(stub.registration) as (manager, responses):
            manager.send(only_update_metadata(stub, number=0))
            await stub.wait_for(1)
            manager.send(only_update_metadata(stub, number=1))
            stub.epoch += 1
            manager.update(opened=(stub.registration,), closed=(1,))
            stub.hold.set()
            manager.send(only_update_metadata(stub, number=2))
            await responses.wait_for(1)
    assert leader_epochs(stub) == [0, 2]
    assert stub.received[-1].request.broker_epoch == stub.epoch
    assert stub.received[-1].connection == 2


async def test_closing_from_within_a_response_stops_at_once() -> None:
    """Also between the deletions and the stops of a batch."""
    both = {
        TopicPartition("a", 0): StopReplicaPartition(-1, False),
        TopicPartition("b", 0): StopReplicaPartition(-2, True),
    }
    seen: list[ControlResponse] = []
    done = asyncio.Event()

    async with StubBroker(1, protocol_version="2.4-IV1") as stub:

        def resign(response: ControlResponse) -> None:
            seen.append(response)
            manager.close_all()
            done.set()

        async with channels(stub.registration, on_response=resign) as (manager, _):
            manager.send(batch(stub, stop_replica={1: both}, leader_and_isr={}))
            manager.send(batch(stub, stop_replica={1: both}, leader_and_isr={}))
            await asyncio.wait_for(done.wait(), DEADLINE_S)
            await manager.wait_closed()
    assert len(seen) == 1
    assert len(stub.received) == 1


async def test_receivers_that_nobody_knows_are_left_out() -> None:
    async with StubBroker(1) as stub, channels(stub.registration) as (manager, responses):
        everybody = batch(
            stub,
            leader_and_isr={1: {TP: False}, 2: {TP: False}},
            update_metadata_receivers=(2, 1, CONTROLLER_ID),
            stop_replica={2: {}, 1: {}},
        )
        manager.send(everybody)
        await responses.wait_for(2)
        not_live = batch(stub, brokers={}, leader_and_isr={}, stop_replica={})
        manager.send(not_live)
        manager.send(only_update_metadata(stub, number=4))
        await responses.wait_for(3)
    assert len(stub.received) == 3


async def test_a_defect_ends_the_channel_and_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A partition without a state cannot be encoded. Sending on without it would be worse."""
    failed: asyncio.Future[tuple[Broker, int, BaseException]] = (
        asyncio.get_running_loop().create_future()
    )
    async with StubBroker(1) as stub:
        manager = ControllerChannelManager(
            controller_id=CONTROLLER_ID,
            settings=FAST,
            may_send=lambda: True,
            on_response=Responses(),
            on_failure=lambda *failure: failed.set_result(failure),
        )
        manager.update(opened=(stub.registration,), controller_epoch=5)
        manager.send(batch(stub, partitions={}))
        broker, controller_epoch, error = await asyncio.wait_for(failed, DEADLINE_S)
        manager.close_all()
        await manager.wait_closed()
    assert (broker, controller_epoch) == (stub.registration, 5)
    assert isinstance(error, KeyError)
    assert "channel ended by a defect" in caplog.messages
