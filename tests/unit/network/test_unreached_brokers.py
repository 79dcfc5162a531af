"""Brokers that are alive and not reached: what they have not been informed of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from regent.network import controller_channel_manager
from regent.network.controller_channel_manager import ControllerChannelManager
from tests.support.stub_broker import stub_brokers
from tests.unit.network.open_channels import (
    FAST,
    TP,
    batch,
    channels,
    dead_port,
    only_update_metadata,
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is out of reach is news without a wait."""
    monkeypatch.setattr(controller_channel_manager, "UNREACHED_S", 0.0)


async def until(holds: Callable[[], object]) -> None:
    """Wait for what a channel has just begun."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - a channel reports nothing that could be awaited
            await asyncio.sleep(0)


async def test_a_broker_that_nobody_connects_to_is_uninformed_until_somebody_does() -> None:
    async with stub_brokers(1) as (stub,):
        (endpoint,) = stub.registration.endpoints
        elsewhere = msgspec.structs.replace(endpoint, port=dead_port())
        astray = msgspec.structs.replace(stub.registration, endpoints=(elsewhere,))
        async with channels(astray) as (manager, responses):
            await until(manager.problems)
            assert manager.uninformed() == {}, "it knows all that there is to know"
            manager.send(only_update_metadata(stub))
            assert manager.uninformed() == {}, "it leads and follows nothing"
            manager.send(batch(stub))
            assert manager.uninformed() == {1: frozenset([TP])}
            manager.readdress([stub.registration])
            await responses.wait_for(1)
            await until(lambda: not manager.uninformed())


async def test_a_broker_that_does_not_answer_is_uninformed_until_it_does() -> None:
    settings = msgspec.structs.replace(FAST, response_timeout=0.2)
    async with (
        stub_brokers(1) as (stub,),
        channels(stub.registration, settings=settings) as (manager, responses),
    ):
        await until(lambda: _is_informed(manager))
        stub.hold.clear()
        manager.send(batch(stub))
        await until(lambda: manager.uninformed() == {1: frozenset([TP])})
        assert "TimeoutError" in manager.problems()[1]
        stub.hold.set()
        await responses.wait_for(1)
        await until(lambda: not manager.uninformed())
        assert manager.problems() == {}


async def test_a_moment_out_of_reach_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_channel_manager, "UNREACHED_S", 60.0)
    async with stub_brokers(1) as (stub,):
        (endpoint,) = stub.registration.endpoints
        elsewhere = msgspec.structs.replace(endpoint, port=dead_port())
        astray = msgspec.structs.replace(stub.registration, endpoints=(elsewhere,))
        async with channels(astray) as (manager, _):
            manager.send(batch(stub))
            await until(manager.problems)
            assert manager.uninformed() == {}


def _is_informed(manager: ControllerChannelManager) -> bool:
    return not any(manager.queue_sizes().values()) and not manager.problems()
