"""What the channels share, and the memory behind it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from regent.model.partition import TopicPartition
from regent.network.settings import response_timeout
from regent.protocol import metadata_updates, update_metadata
from regent.protocol.control_requests import (
    BrokerList,
    ControlHeader,
    LeaderAndIsrRequest,
    PartitionUpdates,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from tests.support.event_loop import until_idle
from tests.support.stub_broker import UPDATE_METADATA, stub_brokers
from tests.support.waiting import until
from tests.unit.network.open_channels import (
    batch,
    brokers_with_channels,
    channels,
    leader_epochs,
    only_update_metadata,
)


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[PartitionUpdates]]:
    """Every update that is made, without keeping it alive."""
    made: list[weakref.ref[PartitionUpdates]] = []

    def observed(*args: Any, **options: Any) -> PartitionUpdates:
        update = PartitionUpdates(*args, **options)
        made.append(weakref.ref(update))
        return update

    monkeypatch.setattr(metadata_updates, "PartitionUpdates", observed)
    return made


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of partitions of every section of UpdateMetadata that is encoded."""
    made: list[int] = []
    encode = update_metadata._encode_partitions

    def observed(partitions: PartitionUpdates, version: int) -> bytes:
        made.append(len(partitions.partitions))
        return encode(partitions, version)

    monkeypatch.setattr(update_metadata, "_encode_partitions", observed)
    return made


async def test_answered_update_is_forgotten(updates: list[weakref.ref[PartitionUpdates]]) -> None:
    async with brokers_with_channels(2) as (stubs, manager, responses):
        for number in range(3):
            manager.send(only_update_metadata(*stubs, number=number))
            await responses.wait_for(2 * number + 2)
        await until_idle()
        gc.collect()
        assert [update() for update in updates] == [None] * len(updates)


async def test_receivers_in_step_encode_an_update_once(encodings: list[int]) -> None:
    async with brokers_with_channels(3) as (stubs, manager, responses):
        for number in range(4):
            manager.send(only_update_metadata(*stubs, number=number))
            await responses.wait_for(3 * number + 3)
    assert encodings == [1, 1, 1, 1]


async def test_receivers_that_lag_alike_share_an_update(encodings: list[int]) -> None:
    async with brokers_with_channels(3) as (stubs, manager, responses):
        for stub in stubs:
            stub.hold.clear()
        manager.send(only_update_metadata(*stubs))
        for stub in stubs:
            await stub.wait_for(1)
        for number in range(1, 5):
            manager.send(only_update_metadata(*stubs, number=number))
        for stub in stubs:
            stub.hold.set()
        await responses.wait_for(6)
    assert encodings == [1, 1]
    assert [leader_epochs(stub) for stub in stubs] == [[0, 4]] * 3


def test_the_time_for_an_answer_grows_with_the_partitions_of_a_request() -> None:
    header = ControlHeader(1, 1, 1, 1)
    names = [TopicPartition("t", n) for n in range(150_000)]
    stops = dict.fromkeys(names[:50_000], StopReplicaPartition(0, True))
    first = LeaderAndIsrRequest(header, dict.fromkeys(names, False), {}, {}, {})
    assert response_timeout(first, 30.0) == 90.0
    assert response_timeout(StopReplicaRequest(header, stops), 30.0) == 30.0
    empty = UpdateMetadataRequest(header, BrokerList({}), PartitionUpdates({}))
    assert response_timeout(empty, 30.0) == 30.0


async def test_batch_counts_as_acknowledged_when_its_metadata_is() -> None:
    async with brokers_with_channels(2) as (stubs, manager, responses):
        assert manager.acknowledged() == {1: -1, 2: -1}
        stubs[1].hold.clear()
        manager.send(only_update_metadata(*stubs))
        manager.send(only_update_metadata(*stubs, number=1))
        await responses.wait_for(1)
        assert manager.acknowledged()[2] == -1
        stubs[1].hold.set()
        await responses.wait_for(2)
        await until(lambda: manager.acknowledged() == {1: 2, 2: 2}, "acknowledgements")
        manager.send(batch(*stubs, leader_and_isr={}, update_metadata_receivers=()))
        assert manager.acknowledged() == {1: 3, 2: 3}


async def test_refused_metadata_counts_as_unknown() -> None:
    async with (
        stub_brokers(1) as stubs,
        channels(stubs[0].registration) as (manager, responses),
    ):
        stubs[0].errors = {UPDATE_METADATA: 31}
        manager.send(only_update_metadata(*stubs))
        await responses.wait_for(1)
        assert manager.acknowledged() == {1: -1}
