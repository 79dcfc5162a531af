"""At which of its endpoints a broker is reached."""

from __future__ import annotations

import logging
import ssl

import msgspec
import pytest

from regent.model.cluster import Broker, EndPoint
from regent.network.settings import ChannelSettings
from tests.support.fixed_tls import FixedTls
from tests.support.stub_broker import StubBroker, stub_brokers
from tests.support.waiting import until
from tests.unit.network.open_channels import (
    DEAD_PORT,
    FAST,
    batch,
    channels,
    leader_epochs,
    only_update_metadata,
    two_listeners,
)


def name_internal_listener(*stubs: StubBroker) -> None:
    """Have them say that the listener of brokers is ``INTERNAL``."""
    for stub in stubs:
        assert stub.configs is not None
        stub.configs["inter.broker.listener.name"] = "INTERNAL"


class TestListeners:
    """Which of a broker's endpoints is used."""

    async def test_the_broker_names_the_listener(self) -> None:
        async with StubBroker(1) as internal, StubBroker(1) as public:
            name_internal_listener(internal, public)
            async with channels(two_listeners(public, internal)) as (manager, responses):
                manager.send(batch(internal))
                await responses.wait_for(3)
            assert (public.connections, len(public.received)) == (1, 0)
            assert (internal.connections, len(internal.received)) == (1, 3)

    async def test_the_configured_listener_is_used_without_asking(self) -> None:
        settings = ChannelSettings(listener="PUBLIC")
        async with StubBroker(1) as internal, StubBroker(1) as public:
            name_internal_listener(public)
            broker = two_listeners(internal, public, names=("INTERNAL", "PUBLIC"))
            async with channels(broker, settings=settings) as (manager, responses):
                manager.send(batch(internal))
                await responses.wait_for(3)
            assert (internal.connections, len(public.received)) == (0, 3)

    async def test_broker_names_another_listener(self, caplog: pytest.LogCaptureFixture) -> None:
        """One that is set up otherwise than the others is no reason not to control it."""
        settings = ChannelSettings(listener="BROKERS")
        async with StubBroker(1) as internal, StubBroker(1) as public:
            name_internal_listener(internal, public)
            broker = two_listeners(public, internal)
            async with channels(broker, settings=settings) as (manager, responses):
                manager.send(batch(internal))
                await responses.wait_for(3)
            assert (len(public.received), len(internal.received)) == (0, 3)
        warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert warnings
        assert {record.getMessage() for record in warnings} == {
            "broker lacks the listener inter_broker_listener; another one is used"
        }

    async def test_another_endpoint_is_tried_when_one_fails(self) -> None:
        async with StubBroker(1) as dead, StubBroker(1) as alive:
            await dead.stop()
            broker = two_listeners(dead, alive)
            async with channels(broker) as (manager, responses):
                manager.send(batch(alive))
                await responses.wait_for(3)
                assert manager.metrics()[1].failures == 1

    async def test_unusable_broker_is_reported(self, caplog: pytest.LogCaptureFixture) -> None:
        endpoint = EndPoint("SECURE", "SASL_SSL", "127.0.0.1", 1)
        async with channels(Broker(1, 1, (endpoint,))) as (manager, _):
            await manager.inter_broker_protocol()
        (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert "no listener that these settings can use" in record.error  # type: ignore[attr-defined]


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
@pytest.mark.parametrize(
    ("host", "port"), [("x" * 70, 1), ("127.0.0.1", 99_999), ("", -1), ("", 1), (".", 1)]
)
async def test_impossible_address_is_out_of_reach(host: str, port: int, protocol: str) -> None:
    """A registration may say anything. It must not bring the controller down."""
    broker = Broker(1, 1, (EndPoint(protocol, protocol, host, port),))
    settings = msgspec.structs.replace(FAST, tls=FixedTls(ssl.create_default_context()))
    async with channels(broker, settings=settings) as (manager, _):
        await until(lambda: manager.metrics()[1].failures, "an attempt to fail")


async def test_what_waits_is_sent_to_the_endpoint_that_a_broker_has_moved_to() -> None:
    """In the same life: nothing is lost, and the former endpoint is not tried again."""
    async with (
        StubBroker(1) as former,
        StubBroker(1) as moved,
        channels(former.registration) as (manager, responses),
    ):
        manager.send(only_update_metadata(former))
        await responses.wait_for(1)
        await former.stop()
        manager.send(only_update_metadata(former, number=1))
        manager.readdress([moved.registration])
        await responses.wait_for(2)
        assert leader_epochs(moved) == [1]


async def test_a_broker_that_has_moved_keeps_the_connection_that_it_has() -> None:
    async with stub_brokers(1) as (stub,), channels(stub.registration) as (manager, responses):
        manager.send(only_update_metadata(stub))
        await responses.wait_for(1)
        elsewhere = EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", DEAD_PORT)
        manager.readdress([msgspec.structs.replace(stub.registration, endpoints=(elsewhere,))])
        manager.send(only_update_metadata(stub, number=1))
        await responses.wait_for(2)
        assert stub.connections == 1


async def test_the_endpoints_of_another_life_do_not_concern_a_channel() -> None:
    async with stub_brokers(1) as (stub,), channels(stub.registration) as (manager, responses):
        elsewhere = EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", DEAD_PORT)
        other = msgspec.structs.replace(
            stub.registration, endpoints=(elsewhere,), epoch=stub.epoch + 1
        )
        manager.readdress([other])
        manager.send(only_update_metadata(stub))
        await responses.wait_for(1)
