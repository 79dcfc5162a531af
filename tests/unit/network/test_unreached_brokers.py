"""Brokers that are alive and not reached: what they have not been informed of."""

from __future__ import annotations

import msgspec
import pytest

from regent.model.cluster import Broker
from regent.network import broker_channel, controller_channel_manager
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.protocol.api_versions import API_KEYS
from tests.support.stub_broker import SUPPORTED_BY_3_9, StubBroker, stub_brokers
from tests.support.waiting import until
from tests.unit.network.open_channels import (
    DEAD_PORT,
    FAST,
    TP,
    batch,
    brokers_with_channels,
    channels,
    only_update_metadata,
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is out of reach is news without a wait."""
    monkeypatch.setattr(controller_channel_manager, "UNREACHED_S", 0.0)


def astray(stub: StubBroker) -> Broker:
    """The registration with an endpoint where nobody listens."""
    elsewhere = msgspec.structs.replace(stub.endpoint, port=DEAD_PORT)
    return msgspec.structs.replace(stub.registration, endpoints=(elsewhere,))


async def test_a_broker_that_nobody_connects_to_is_uninformed_until_somebody_does() -> None:
    async with stub_brokers(1) as (stub,), channels(astray(stub)) as (manager, responses):
        await until(manager.problems)
        assert manager.uninformed() == {1: frozenset()}, "it knows all that there is to know"
        manager.send(only_update_metadata(stub))
        assert manager.uninformed() == {1: frozenset()}, "it leads and follows nothing"
        manager.send(batch(stub))
        assert manager.uninformed() == {1: frozenset([TP])}
        assert manager.uninformed()[1] is manager.uninformed()[1], "there may be very many"
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


async def test_broker_without_common_version_is_uninformed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that does not let the controller's requests through, for instance."""
    monkeypatch.setattr(broker_channel, "REFUSED_INTERVAL", 0.01)
    closed = {key: known for key, known in SUPPORTED_BY_3_9.items() if key not in API_KEYS}
    async with (
        StubBroker(1, supported=closed) as stub,
        channels(stub.registration) as (manager, responses),
    ):
        manager.send(batch(stub))
        await until(lambda: manager.uninformed() == {1: frozenset([TP])})
        assert "does not list API 4" in manager.problems()[1]
        assert list(manager.silent()) == [1]
        stub.supported = SUPPORTED_BY_3_9
        await responses.wait_for(1)
        await until(lambda: not manager.uninformed())
        assert list(manager.silent()) == []


async def test_a_broker_that_has_not_answered_yet_is_to_get_no_leaders() -> None:
    async with stub_brokers(1) as (stub,), channels(stub.registration) as (manager, responses):
        stub.hold.clear()
        manager.send(batch(stub))
        await until(lambda: stub.received)
        assert list(manager.silent()) == [1]
        stub.hold.set()
        await responses.wait_for(1)
        assert list(manager.silent()) == []


async def test_leadership_is_unanswered_until_the_broker_answers_and_somebody_reads_it() -> None:
    async with brokers_with_channels(2) as (stubs, manager, responses):
        held, other = stubs
        held.hold.clear()
        manager.send(batch(held))
        assert manager.unanswered() == {1: manager.last_batch}
        first = manager.last_batch
        await until(lambda: held.received)
        manager.send(batch(other))
        assert manager.last_batch > first
        assert manager.unanswered() == {1: first, 2: manager.last_batch}
        await responses.wait_for(1)
        manager.answers_read(unread=lambda: [2])
        assert manager.unanswered() == {1: first, 2: manager.last_batch}, "2 may refuse to lead"
        manager.answers_read(unread=list)
        assert manager.unanswered() == {1: first}
        held.hold.set()
        await responses.wait_for(2)
        manager.answers_read(unread=list)
        assert manager.unanswered() == {}


async def test_a_moment_out_of_reach_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_channel_manager, "UNREACHED_S", 60.0)
    async with stub_brokers(1) as (stub,), channels(astray(stub)) as (manager, _):
        manager.send(batch(stub))
        await until(manager.problems)
        assert manager.uninformed() == {}


def _is_informed(manager: ControllerChannelManager) -> bool:
    return not any(manager.queue_sizes().values()) and not manager.problems()
