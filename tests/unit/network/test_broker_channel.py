"""One channel against a stub broker over real sockets."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from regent.model.partition import TopicPartition
from regent.network import broker_channel
from regent.protocol import control_codec
from regent.protocol.control_codec import Body, encode_body
from regent.protocol.control_requests import (
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from tests.support import reference_requests as reference
from tests.support.stub_broker import (
    API_VERSIONS,
    LEADER_AND_ISR,
    STOP_REPLICA,
    SUPPORTED_BY_3_9,
    UPDATE_METADATA,
    StubBroker,
    stub_brokers,
)
from tests.support.thread_shortage import thread_shortage
from tests.support.unmerged_requests import leader_and_isr_to, stop_replica_to, update_metadata_to
from tests.unit.network.open_channels import (
    CONTROLLER_ID,
    TP,
    batch,
    brokers_with_channels,
    channels,
)


async def test_a_batch_arrives_in_order_and_is_answered() -> None:
    async with brokers_with_channels(2) as (stubs, manager, responses):
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


async def test_large_requests_are_encoded_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, and what arrives is the same."""
    monkeypatch.setattr(control_codec, "ENCODED_AT_ONCE", 0)
    loops_thread, encoding = threading.get_ident(), 0

    def encode(*args: Any, **options: Any) -> Body:
        nonlocal encoding
        assert threading.get_ident() != loops_thread
        encoding += 1
        assert encoding == 1
        body = encode_body(*args, **options)
        encoding -= 1
        return body

    monkeypatch.setattr(broker_channel, "encode_body", encode)
    async with brokers_with_channels(3) as (stubs, manager, responses):
        requests = batch(*stubs)
        manager.send(requests)
        await responses.wait_for(9)
    for stub in stubs:
        first = stub.received[0]
        assert first.request == reference.leader_and_isr(
            leader_and_isr_to(requests, stub.broker_id), version=7
        )


async def test_large_requests_are_encoded_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no reason to give the controller up."""
    monkeypatch.setattr(control_codec, "ENCODED_AT_ONCE", 0)
    async with (
        stub_brokers(1) as (stub,),
        channels(stub.registration) as (manager, responses),
    ):
        requests = batch(stub)
        with thread_shortage() as refused:
            manager.send(requests)
            await responses.wait_for(3)
    assert refused
    assert stub.received[0].request == reference.leader_and_isr(
        leader_and_isr_to(requests, stub.broker_id), version=7
    )


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


async def test_a_broker_without_api_versions_3_is_asked_again() -> None:
    supported = {4: (0, 1), 5: (0, 0), 6: (0, 4), API_VERSIONS: (0, 1)}
    async with StubBroker(1, supported=supported, protocol_version="1.1-IV0") as stub:
        async with channels(stub.registration) as (manager, responses):
            assert await manager.inter_broker_protocol() == (1, 1)
            manager.send(batch(stub))
            await responses.wait_for(3)
        assert stub.connections == 1


async def test_unsupported_request_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
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
    assert [record.getMessage() for record in errors] == ["request left out: no common version"]
