"""What the channels share: encoders, and the memory behind them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from regent.network import controller_channel_manager, outgoing
from regent.protocol.request_encoder import RequestEncoder
from tests.support.stub_broker import stub_brokers
from tests.unit.network.test_broker_channel import channels, leader_epochs, only_update_metadata


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[RequestEncoder]]:
    """Every encoder that is made, without keeping it alive."""
    made: list[weakref.ref[RequestEncoder]] = []

    class Observed(RequestEncoder):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(weakref.ref(self))

    monkeypatch.setattr(controller_channel_manager, "RequestEncoder", Observed)
    return made


async def test_a_batch_is_forgotten_once_everybody_has_answered(
    encoders: list[weakref.ref[RequestEncoder]],
) -> None:
    async with (
        stub_brokers(2) as stubs,
        channels(*(stub.registration for stub in stubs)) as (manager, responses),
    ):
        for number in range(3):
            manager.send(only_update_metadata(*stubs, number=number))
        await responses.wait_for(6)
        await asyncio.sleep(0)
        gc.collect()
        assert [encoder() for encoder in encoders] == [None, None, None]


async def test_a_stuck_broker_does_not_hold_the_bytes_of_all_it_missed(
    encoders: list[weakref.ref[RequestEncoder]],
) -> None:
    async with (
        stub_brokers(2) as stubs,
        channels(*(stub.registration for stub in stubs)) as (manager, responses),
    ):
        stuck, healthy = stubs
        stuck.hold.clear()
        for number in range(20):
            manager.send(only_update_metadata(stuck, healthy, number=number))
        await responses.wait_for(20)
        alive = [encoder for ref in encoders if (encoder := ref()) is not None]
        assert len(alive) == 20
        warm = [encoder for encoder in alive if encoder._update_metadata]
        assert len(warm) <= 4
        del alive, warm
        stuck.hold.set()
        await responses.wait_for(40)
        assert leader_epochs(stuck) == list(range(20))


async def test_receivers_in_step_encode_a_batch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[RequestEncoder] = []
    monkeypatch.setattr(RequestEncoder, "release", released.append)
    async with (
        stub_brokers(3) as stubs,
        channels(*(stub.registration for stub in stubs)) as (manager, responses),
    ):
        for number in range(4):
            manager.send(only_update_metadata(*stubs, number=number))
        await responses.wait_for(12)
    assert released == []


def test_every_kind_of_request_names_its_api() -> None:
    encoder: Any = None
    assert [
        kind(encoder, 1).api_key
        for kind in (
            outgoing.OutgoingLeaderAndIsr,
            outgoing.OutgoingUpdateMetadata,
            outgoing.OutgoingStopReplica,
        )
    ] == [4, 6, 5]
