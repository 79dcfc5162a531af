"""One channel against a stub broker over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.model.topic_config import SETTINGS_SINCE, BrokerFacts
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.settings import ChannelSettings
from regent.protocol import kafka_api_versions
from regent.protocol.api_versions import ProtocolVersion
from regent.protocol.control_requests import (
    ControlRequests,
    ControlResponse,
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from regent.protocol.metadata_updates import MAX_PARTITIONS
from regent.protocol.partition_state import PartitionState
from tests.support import reference_requests as reference
from tests.support.stub_broker import (
    API_VERSIONS,
    LEADER_AND_ISR,
    STOP_REPLICA,
    SUPPORTED_BY_3_9,
    UPDATE_METADATA,
    Fault,
    StubBroker,
    named_partitions,
    stub_brokers,
)
from tests.support.unmerged_requests import (
    leader_and_isr_to,
    stop_replica_to,
    update_metadata_to,
)

CONTROLLER_ID = 1_000_000_007
FAST = ChannelSettings(
    connect_timeout=2.0, response_timeout=5.0, retry_delay=0.01, max_retry_delay=0.02
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
        async with asyncio.timeout(10):
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


async def test_a_batch_arrives_in_order_and_is_answered() -> None:
    async with (
        stub_brokers(2) as stubs,
        channels(*(stub.registration for stub in stubs)) as (manager, responses),
    ):
        requests = batch(*stubs)
        manager.send(requests)
        await responses.wait_for(6)
    for stub in stubs:
        assert [received.api_key for received in stub.received] == [
            LEADER_AND_ISR,
            UPDATE_METADATA,
            STOP_REPLICA,
        ]
        assert [received.api_version for received in stub.received] == [7, 8, 4]
        assert {received.client_id for received in stub.received} == {str(CONTROLLER_ID)}
        first, second, third = (received.request for received in stub.received)
        broker_id = stub.broker_id
        (stop,) = stop_replica_to(requests, broker_id)
        assert first == reference.leader_and_isr(leader_and_isr_to(requests, broker_id), version=7)
        assert second == reference.update_metadata(
            update_metadata_to(requests, broker_id), version=8
        )
        assert third == reference.stop_replica(stop, version=4)
        mine = [response for response in responses.all if response.broker_id == broker_id]
        epochs = (requests.controller_epoch, requests.brokers[broker_id].epoch)
        assert mine == [
            LeaderAndIsrResponse(broker_id, 0, {}, {TP: True}, *epochs),
            UpdateMetadataResponse(broker_id, 0, *epochs),
            StopReplicaResponse(broker_id, 0, {}, requests.stop_replica[broker_id], *epochs),
        ]


async def test_errors_reach_the_controller() -> None:
    async with StubBroker(1) as stub:
        stub.errors = {UPDATE_METADATA: 11}
        stub.partition_errors = {TP: 56, ("old", 0): 74}
        async with channels(stub.registration) as (manager, responses):
            manager.send(batch(stub))
            first, second, third = await responses.wait_for(3)
    assert isinstance(first, LeaderAndIsrResponse)
    assert first.partition_errors == {TP: 56}
    assert second.error_code == 11
    assert isinstance(third, StopReplicaResponse)
    assert third.partition_errors == {TopicPartition("old", 0): 74}


@pytest.mark.parametrize(
    ("protocol", "versions"),
    [("1.1-IV0", [1, 4, 0]), ("2.4-IV1", [4, 6, 2]), ("2.6", [4, 6, 3]), ("2.8-IV1", [5, 7, 3])],
)
async def test_versions_follow_the_protocol_version(protocol: str, versions: list[int]) -> None:
    async with (
        StubBroker(1, protocol_version=protocol) as stub,
        channels(stub.registration) as (manager, _),
    ):
        manager.send(batch(stub))
        received = await stub.wait_for(3)
    assert [each.api_version for each in received] == versions


async def test_the_lowest_protocol_version_of_the_cluster_counts_for_all() -> None:
    async with (
        StubBroker(1, protocol_version="3.9-IV0") as new,
        StubBroker(2, protocol_version="2.6") as old,
        channels(new.registration, old.registration) as (manager, responses),
    ):
        assert await manager.inter_broker_protocol() == (2, 6)
        manager.send(batch(new, old))
        await responses.wait_for(6)
    for stub in (new, old):
        assert [received.api_version for received in stub.received] == [4, 6, 3]


async def test_what_a_broker_understands_caps_the_version() -> None:
    supported = SUPPORTED_BY_3_9 | {LEADER_AND_ISR: (0, 5), UPDATE_METADATA: (0, 7)}
    async with (
        StubBroker(1, supported=supported) as stub,
        channels(stub.registration) as (manager, _),
    ):
        manager.send(batch(stub))
        received = await stub.wait_for(3)
    assert [each.api_version for each in received] == [5, 7, 4]


async def test_a_broker_without_api_versions_3_is_asked_again() -> None:
    supported = {4: (0, 1), 5: (0, 0), 6: (0, 4), API_VERSIONS: (0, 1)}
    async with StubBroker(1, supported=supported, protocol_version="1.1-IV0") as stub:
        async with channels(stub.registration) as (manager, responses):
            assert await manager.inter_broker_protocol() == (1, 1)
            manager.send(batch(stub))
            await responses.wait_for(3)
        assert stub.connections == 1


async def test_a_broker_without_a_common_version_is_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supported = SUPPORTED_BY_3_9 | {UPDATE_METADATA: (0, 3)}
    async with (
        StubBroker(1, supported=supported) as stub,
        channels(stub.registration) as (manager, responses),
    ):
        for number in range(2):
            manager.send(batch(stub, number=number))
            await responses.wait_for(2 * number + 2)
    assert [each.api_key for each in stub.received] == [LEADER_AND_ISR, STOP_REPLICA] * 2
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in errors] == ["broker skipped: no common version"]


async def test_old_stop_replica_is_split_and_each_half_answered() -> None:
    both = {
        TopicPartition("a", 0): StopReplicaPartition(-1, False),
        TopicPartition("b", 0): StopReplicaPartition(-2, True),
    }
    async with (
        StubBroker(1, protocol_version="2.4-IV1") as stub,
        channels(stub.registration) as (manager, responses),
    ):
        manager.send(batch(stub, stop_replica={1: both}))
        answers = (await responses.wait_for(4))[2:]
    requests = [received.request for received in stub.received[2:]]
    assert [request.delete_partitions for request in requests] == [True, False]
    assert [named_partitions(received) for received in stub.received[2:]] == [
        [("b", 0)],
        [("a", 0)],
    ]
    assert [list(answer.partitions) for answer in answers] == [  # type: ignore[union-attr]
        [TopicPartition("b", 0)],
        [TopicPartition("a", 0)],
    ]


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
        await responses.wait_for(3)
        manager.send(batch(stub, **(large | {"leader_and_isr": {}})))
        await responses.wait_for(7)
        manager.send(batch(stub, **(large | {"stop_replica": {}})))
        await responses.wait_for(11)
    assert [received.api_key for received in stub.received] == [
        *(LEADER_AND_ISR, UPDATE_METADATA, UPDATE_METADATA),
        *(UPDATE_METADATA, UPDATE_METADATA, STOP_REPLICA, STOP_REPLICA),
        *(LEADER_AND_ISR, LEADER_AND_ISR, UPDATE_METADATA, UPDATE_METADATA),
    ]


async def test_nothing_is_sent_while_the_fence_is_up() -> None:
    allowed, asked = False, asyncio.Event()

    def may_send() -> bool:
        asked.set()
        return allowed

    async with (
        StubBroker(1) as stub,
        channels(stub.registration, may_send=may_send) as (manager, responses),
    ):
        manager.send(only_update_metadata(stub))
        for _ in range(3):
            asked.clear()
            await asyncio.wait_for(asked.wait(), 5)
        assert stub.received == []
        assert manager.metrics()[1].sent == 0
        allowed = True
        await responses.wait_for(1)
    assert len(stub.received) == 1


async def test_the_fence_is_asked_before_a_repetition() -> None:
    answers = iter([True, False, True])
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
            await asyncio.wait_for(done.wait(), 5)
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


async def test_a_slow_reader_gets_a_large_request_whole() -> None:
    partitions = [TopicPartition(f"topic-{n // 50}", n % 50) for n in range(20_000)]
    leadership, assignment = LeaderAndIsr(1, 0, (1,), 5, 3), ReplicaAssignment((1,))
    states = {tp: PartitionState(tp.partition, leadership, assignment) for tp in partitions}
    async with StubBroker(1) as stub, channels(stub.registration) as (manager, responses):
        stub.slow_reading = 0.001
        manager.send(
            batch(
                stub,
                partitions=states,
                leader_and_isr={1: dict.fromkeys(partitions, False)},
                stop_replica={},
            )
        )
        first, _ = await responses.wait_for(2)
    assert isinstance(first, LeaderAndIsrResponse)
    assert (first.partition_errors, len(first.partitions)) == ({}, 20_000)
    for received in stub.received:
        assert named_partitions(received) == partitions


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
        broker, controller_epoch, error = await asyncio.wait_for(failed, 5)
        manager.close_all()
        await manager.wait_closed()
    assert (broker, controller_epoch) == (stub.registration, 5)
    assert isinstance(error, KeyError)
    assert "channel ended by a defect" in caplog.messages


class TestListeners:
    """Which of a broker's endpoints is used."""

    async def test_the_broker_names_the_listener(self) -> None:
        async with StubBroker(1) as internal, StubBroker(1) as public:
            for stub in (internal, public):
                assert stub.configs is not None
                stub.configs["inter.broker.listener.name"] = "INTERNAL"
            async with channels(_two_listeners(public, internal)) as (manager, responses):
                manager.send(batch(internal))
                await responses.wait_for(3)
            assert (public.connections, len(public.received)) == (1, 0)
            assert (internal.connections, len(internal.received)) == (1, 3)

    async def test_the_configured_listener_is_used_without_asking(self) -> None:
        settings = ChannelSettings(listener="PUBLIC")
        async with StubBroker(1) as internal, StubBroker(1) as public:
            assert public.configs is not None
            public.configs["inter.broker.listener.name"] = "INTERNAL"
            broker = _two_listeners(internal, public, names=("INTERNAL", "PUBLIC"))
            async with channels(broker, settings=settings) as (manager, responses):
                manager.send(batch(internal))
                await responses.wait_for(3)
            assert (internal.connections, len(public.received)) == (0, 3)

    async def test_another_endpoint_is_tried_when_one_fails(self) -> None:
        async with StubBroker(1) as dead, StubBroker(1) as alive:
            await dead.stop()
            broker = _two_listeners(dead, alive)
            async with channels(broker) as (manager, responses):
                manager.send(batch(alive))
                await responses.wait_for(3)
                assert manager.metrics()[1].failures == 1

    async def test_a_broker_that_cannot_be_used_is_reported(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        endpoint = EndPoint("SECURE", "SASL_SSL", "127.0.0.1", 1)
        async with channels(Broker(1, 1, (endpoint,))) as (manager, _):
            await manager.inter_broker_protocol()
        (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert "no listener that these settings can use" in record.error  # type: ignore[attr-defined]


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
@pytest.mark.parametrize(
    ("host", "port"), [("x" * 70, 1), ("127.0.0.1", 99_999), ("", -1), ("", 1), (".", 1)]
)
async def test_an_impossible_address_is_only_out_of_reach(
    host: str, port: int, protocol: str
) -> None:
    """A registration may say anything. It must not bring the controller down."""
    broker = Broker(1, 1, (EndPoint(protocol, protocol, host, port),))
    settings = msgspec.structs.replace(FAST, ssl_context=ssl.create_default_context())
    async with channels(broker, settings=settings) as (manager, _):
        await manager.inter_broker_protocol()
        assert manager.metrics()[1].failures > 0


class TestProtocolVersion:
    """``inter_broker_protocol``."""

    async def test_a_refusal_falls_back_to_the_registration(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with StubBroker(1) as stub:
            stub.configs = None
            async with channels(stub.registration) as (manager, _):
                assert await manager.inter_broker_protocol() == (2, 7)
        assert "broker does not report its protocol version" in caplog.messages

    async def test_the_setting_stands_in_for_a_broker_that_cannot_be_asked(self) -> None:
        settings = ChannelSettings(protocol_version=ProtocolVersion(2, 8, 1))
        silent = Broker(9, 1, (EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", _dead_port()),))
        async with (
            StubBroker(1) as stub,
            channels(stub.registration, silent, settings=settings) as (manager, _),
        ):
            assert await manager.inter_broker_protocol() == (2, 8)
            manager.send(batch(stub))
            assert [each.api_version for each in await stub.wait_for(3)] == [5, 7, 3]

    async def test_the_setting_does_not_overrule_what_brokers_tell(self) -> None:
        settings = ChannelSettings(protocol_version=ProtocolVersion(3, 9))
        async with (
            StubBroker(1, protocol_version="2.6-IV0") as stub,
            channels(stub.registration, settings=settings) as (manager, _),
        ):
            assert await manager.inter_broker_protocol() == (2, 6)

    async def test_the_setting_does_not_count_where_a_broker_does_not_understand_it(self) -> None:
        settings = ChannelSettings(protocol_version=ProtocolVersion(2, 8, 1))
        supported = {**SUPPORTED_BY_3_9, LEADER_AND_ISR: (0, 4)}
        async with StubBroker(1, supported=supported) as stub:
            stub.configs = None
            async with channels(stub.registration, settings=settings) as (manager, _):
                assert await manager.inter_broker_protocol() == (2, 7)

    async def test_without_any_broker_the_setting_is_all_there_is(self) -> None:
        settings = ChannelSettings(protocol_version=ProtocolVersion(2, 6))
        async with channels(settings=settings) as (manager, _):
            assert await manager.inter_broker_protocol() == (2, 6)

    async def test_a_broker_that_does_not_answer_is_waited_for_only_so_long(self) -> None:
        settings = ChannelSettings(protocol_version_wait=0.05)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", port)
            broker = Broker(2, 1, (endpoint,), registration_version=4)
            async with (
                StubBroker(1) as stub,
                channels(stub.registration, broker, settings=settings) as (manager, _),
            ):
                assert await manager.inter_broker_protocol() == (2, 6)

    async def test_a_dead_broker_is_not_waited_for(self) -> None:
        settings = ChannelSettings(protocol_version_wait=60)
        endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", _dead_port())
        dead = Broker(2, 1, (endpoint,), registration_version=5)
        async with (
            StubBroker(1) as stub,
            channels(stub.registration, dead, settings=settings) as (manager, _),
        ):
            async with asyncio.timeout(5):
                assert await manager.inter_broker_protocol() == (3, 9)

    async def test_without_brokers_the_oldest_is_assumed(self) -> None:
        async with channels() as (manager, _):
            assert await manager.inter_broker_protocol() == (1, 0)

    async def test_a_change_is_announced(self) -> None:
        announced: asyncio.Queue[tuple[tuple[int, int], int]] = asyncio.Queue()
        async with (
            StubBroker(1, protocol_version="3.9-IV0") as new,
            StubBroker(2, protocol_version="2.6") as old,
            channels(
                new.registration, on_protocol_version=lambda *told: announced.put_nowait(told)
            ) as (manager, _),
        ):
            assert await manager.inter_broker_protocol() == (3, 9)
            manager.update(opened=(old.registration,), controller_epoch=7)
            assert await asyncio.wait_for(announced.get(), 5) == ((2, 6), 7)
            assert old.configs is not None
            old.configs["inter.broker.protocol.version"] = "3.9"
            manager.update(opened=(old.registration,), closed=(2,), controller_epoch=7)
            assert await asyncio.wait_for(announced.get(), 5) == ((3, 9), 7)
            old.configs["inter.broker.protocol.version"] = "2.8"
            manager.update(opened=(old.registration,), closed=(2,), controller_epoch=7)
            assert await asyncio.wait_for(announced.get(), 5) == ((2, 8), 7)
            manager.update(opened=(), closed=(2,), controller_epoch=8)
            assert announced.get_nowait() == ((3, 9), 8)

    async def test_what_decides_about_topic_configurations_is_announced(self) -> None:
        announced: asyncio.Queue[tuple[Broker, BrokerFacts]] = asyncio.Queue()
        supported = {
            api: (0, newest) for api, newest in kafka_api_versions.API_VERSIONS[3, 6].items()
        }
        async with (
            StubBroker(1, supported=supported, protocol_version="3.5") as stub,
            channels(on_broker_facts=lambda *facts: announced.put_nowait(facts)) as (manager, _),
        ):
            assert stub.configs is not None
            stub.configs |= dict.fromkeys(SETTINGS_SINCE) | {"log.cleanup.policy": "compact"}
            manager.update(opened=(stub.registration,))
            expected = BrokerFacts(
                broker_id=1,
                versions=((3, 6),),
                protocol_version=(3, 5),
                settings={"log.cleanup.policy": "compact"},
                has_answered=True,
            )
            assert await asyncio.wait_for(announced.get(), 5) == (stub.registration, expected)
            stub.configs = None
            manager.update(opened=(stub.registration,), closed=(1,))
            _, without_settings = await asyncio.wait_for(announced.get(), 5)
            assert without_settings.settings is None
            assert without_settings.protocol_version is None
            assert without_settings.versions == ((3, 5), (3, 6))

    async def test_a_bounce_that_changes_nothing_is_not_announced(self) -> None:
        """While the only broker is away its version is a guess; nobody is told of that."""
        announced: asyncio.Queue[tuple[tuple[int, int], int]] = asyncio.Queue()
        async with (
            StubBroker(1, protocol_version="3.9-IV0") as stub,
            channels(
                stub.registration, on_protocol_version=lambda *told: announced.put_nowait(told)
            ) as (manager, _),
        ):
            assert await manager.inter_broker_protocol() == (3, 9)
            manager.update(opened=(stub.registration,), closed=(1,))
            assert manager.protocol_version() == (2, 7, 0)
            assert await manager.inter_broker_protocol() == (3, 9)
            assert announced.empty()


def _two_listeners(
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


def _dead_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
