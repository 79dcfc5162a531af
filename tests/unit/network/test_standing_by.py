"""Connections to brokers that a standby has before it is elected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from regent.model.topic_config import BrokerFacts
from regent.network import broker_channel, broker_settings
from regent.network.controller_channel_manager import ControllerChannelManager
from sandbox.waiting import DEADLINE_S
from tests.support.event_loop import until_idle
from tests.support.stub_broker import StubBroker, stub_brokers
from tests.support.waiting import until
from tests.unit.network.open_channels import FAST, batch, channels


@asynccontextmanager
async def standby(**options: Any) -> AsyncIterator[tuple[ControllerChannelManager, Any]]:
    """A manager of a process that is not the controller."""
    async with channels(**options) as (manager, responses):
        manager.close_all()
        yield manager, responses


async def connected(manager: ControllerChannelManager, *broker_ids: int) -> None:
    await until(
        lambda: sorted(manager.standing_by) == list(broker_ids), f"connections to {broker_ids}"
    )


def take_over(manager: ControllerChannelManager, *stubs: StubBroker) -> None:
    manager.update(opened=[stub.registration for stub in stubs], controller_epoch=5)


async def test_a_standby_is_connected_and_sends_nothing() -> None:
    async with stub_brokers(2) as stubs, standby() as (manager, _):
        manager.stand_by([stub.registration for stub in stubs])
        await connected(manager, 1, 2)
        manager.send(batch(*stubs))
        assert manager.metrics() == {}
    assert [stub.received for stub in stubs] == [[], []]


async def test_what_brokers_run_is_expected_once_each_has_answered_or_is_out_of_reach() -> None:
    async with stub_brokers(2) as stubs, standby() as (manager, _):
        heard = asyncio.Event()
        manager.listen(heard.set)

        async def something_new() -> None:
            heard.clear()
            await asyncio.wait_for(heard.wait(), DEADLINE_S)

        stubs[1].configs = {"inter.broker.protocol.version": "3.6-IV2"}
        await stubs[1].stop()
        manager.stand_by([stub.registration for stub in stubs])
        assert manager.expected_protocol() is None
        while manager.expected_protocol() is None:
            await something_new()
        assert manager.expected_protocol() == (3, 9)
        await stubs[1].start()
        while manager.expected_protocol() != (3, 6):
            await something_new()


async def test_a_take_over_sends_through_the_connections_that_there_are() -> None:
    async with stub_brokers(2) as stubs, standby() as (manager, responses):
        manager.stand_by([stub.registration for stub in stubs])
        await connected(manager, 1, 2)
        assert manager.expected_protocol() == (3, 9)
        take_over(manager, *stubs)
        assert await manager.inter_broker_protocol() == manager.expected_protocol() == (3, 9)
        manager.send(batch(*stubs))
        await responses.wait_for(6)
        assert [stub.connections for stub in stubs] == [1, 1]
        assert [len(stub.received) for stub in stubs] == [3, 3]


async def test_what_brokers_have_said_before_is_reported_at_the_take_over() -> None:
    facts: list[BrokerFacts] = []
    async with (
        stub_brokers(1) as (stub,),
        standby(on_broker_facts=lambda _, said: facts.append(said)) as (manager, _),
    ):
        manager.stand_by([stub.registration])
        await connected(manager, 1)
        assert facts == []
        take_over(manager, stub)
        assert [said.broker_id for said in facts] == [1]


async def test_another_life_of_a_broker_is_connected_to_anew() -> None:
    async with stub_brokers(1) as (stub,), standby() as (manager, responses):
        manager.stand_by([msgspec.structs.replace(stub.registration, epoch=7)])
        await connected(manager, 1)
        take_over(manager, stub)
        manager.send(batch(stub))
        await responses.wait_for(3)
        assert stub.connections == 2


async def test_brokers_that_are_gone_are_disconnected_and_others_are_kept() -> None:
    async with stub_brokers(3) as stubs, standby() as (manager, _):
        first, second, third = (stub.registration for stub in stubs)
        manager.stand_by([first, second])
        await connected(manager, 1, 2)
        manager.stand_by([second, third])
        await connected(manager, 2, 3)
        assert [stub.connections for stub in stubs] == [1, 1, 1]


async def test_a_lost_connection_is_opened_again() -> None:
    async with stub_brokers(1) as (stub,), standby() as (manager, responses):
        manager.stand_by([stub.registration])
        await connected(manager, 1)
        await stub.stop()
        await connected(manager)
        await stub.start()
        await connected(manager, 1)
        take_over(manager, stub)
        manager.send(batch(stub))
        await responses.wait_for(3)
        assert stub.connections == 2


async def test_a_broker_that_is_out_of_reach_does_not_hold_up_a_take_over() -> None:
    async with stub_brokers(1) as (stub,), standby() as (manager, responses):
        await stub.stop()
        manager.stand_by([stub.registration])
        await until_idle()
        take_over(manager, stub)
        await stub.start()
        manager.send(batch(stub))
        await responses.wait_for(3)


async def test_a_broker_is_asked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the same connection, and a take-over need not wait for the answer."""
    monkeypatch.setattr(broker_channel, "CHECK_INTERVAL", 0.001)
    async with stub_brokers(1) as (stub,), standby() as (manager, responses):
        manager.stand_by([stub.registration])
        await until(lambda: stub.questions > 10, "questions")
        assert stub.connections == 1
        take_over(manager, stub)
        manager.send(batch(stub))
        await responses.wait_for(3)


async def test_changed_settings_are_known_at_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_channel, "CHECK_INTERVAL", 0.001)
    monkeypatch.setattr(broker_settings, "SETTINGS_INTERVAL", 0.001)
    async with stub_brokers(1) as (stub,), standby() as (manager, _):
        manager.stand_by([stub.registration])
        await connected(manager, 1)
        assert manager.expected_protocol() != (2, 8)
        assert stub.configs is not None
        stub.configs = {**stub.configs, "inter.broker.protocol.version": "2.8"}
        await until(lambda: manager.expected_protocol() == (2, 8), "the new version")
        assert stub.connections == 1


async def test_dead_connection_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A take-over meanwhile does not begin with it."""
    monkeypatch.setattr(broker_channel, "CHECK_INTERVAL", 0.001)
    impatient = msgspec.structs.replace(FAST, connect_timeout=0.2)
    async with stub_brokers(1) as (stub,), standby(settings=impatient) as (manager, responses):
        answer = stub._answer_setup
        manager.stand_by([stub.registration])
        await connected(manager, 1)

        def nothing_through_the_first(api_key: int, version: int, frame: bytes) -> bytes:
            return b"" if stub.connections == 1 else answer(api_key, version, frame)

        monkeypatch.setattr(stub, "_answer_setup", nothing_through_the_first)
        await connected(manager)
        await stub.wait_until(lambda: stub.connections > 1)
        await connected(manager, 1)
        take_over(manager, stub)
        manager.send(batch(stub))
        received = await stub.wait_for(3)
        assert 1 not in {each.connection for each in received}
        await responses.wait_for(3)


async def test_a_controller_stands_by_for_nothing() -> None:
    async with stub_brokers(2) as stubs, standby() as (manager, responses):
        take_over(manager, stubs[0])
        manager.stand_by([stub.registration for stub in stubs])
        manager.send(batch(stubs[0]))
        await responses.wait_for(3)
        assert [stub.connections for stub in stubs] == [1, 0]
        manager.close_all()
        manager.stand_by([stub.registration for stub in stubs])
        await connected(manager, 1, 2)


async def test_closing_ends_what_stands_by() -> None:
    async with stub_brokers(1) as (stub,), standby() as (manager, _):
        manager.stand_by([stub.registration])
        await connected(manager, 1)
        manager.close_all()
        assert manager.standing_by == ()
        await manager.wait_closed()
