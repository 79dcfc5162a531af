"""The protocol version of the cluster, as brokers report it."""

from __future__ import annotations

import asyncio
import socket

import msgspec
import pytest

from regent.model.cluster import Broker, EndPoint
from regent.model.topic_config import MIN_INSYNC_REPLICAS, SETTINGS_SINCE, BrokerFacts
from regent.network import broker_settings
from regent.network.settings import ChannelSettings
from regent.protocol import kafka_api_versions
from regent.protocol.api_versions import ProtocolVersion
from sandbox.waiting import DEADLINE_S
from tests.support.stub_broker import LEADER_AND_ISR, SUPPORTED_BY_3_9, StubBroker
from tests.support.waiting import until
from tests.unit.network.open_channels import DEAD_PORT, batch, channels


class TestProtocolVersion:
    """``inter_broker_protocol``."""

    async def test_registration_follows_a_refusal(self, caplog: pytest.LogCaptureFixture) -> None:
        async with StubBroker(1) as stub:
            stub.configs = None
            async with channels(stub.registration) as (manager, _):
                assert await manager.inter_broker_protocol() == (2, 7)
        assert "broker does not report its protocol version" in caplog.messages

    async def test_the_setting_stands_in_for_a_broker_that_cannot_be_asked(self) -> None:
        settings = ChannelSettings(protocol_version=ProtocolVersion(2, 8, 1))
        silent = Broker(9, 1, (EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", DEAD_PORT),))
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
        settings = ChannelSettings(protocol_version_wait=3)
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
        endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", DEAD_PORT)
        dead = Broker(2, 1, (endpoint,), registration_version=5)
        async with (
            StubBroker(1) as stub,
            channels(stub.registration, dead, settings=settings) as (manager, _),
        ):
            async with asyncio.timeout(DEADLINE_S):
                assert await manager.inter_broker_protocol() == (3, 9)

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
            assert await asyncio.wait_for(announced.get(), DEADLINE_S) == ((2, 6), 7)
            assert old.configs is not None
            old.configs["inter.broker.protocol.version"] = "3.9"
            manager.update(opened=(old.registration,), closed=(2,), controller_epoch=7)
            assert await asyncio.wait_for(announced.get(), DEADLINE_S) == ((3, 9), 7)
            old.configs["inter.broker.protocol.version"] = "2.8"
            manager.update(opened=(old.registration,), closed=(2,), controller_epoch=7)
            assert await asyncio.wait_for(announced.get(), DEADLINE_S) == ((2, 8), 7)
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
                api_versions=supported,
            )
            assert await asyncio.wait_for(announced.get(), DEADLINE_S) == (
                stub.registration,
                expected,
            )
            former = msgspec.structs.replace(stub.registration, epoch=stub.registration.epoch - 1)
            assert manager.facts([stub.registration]) == [expected]
            assert manager.facts([former]) == []
            stub.configs = None
            manager.update(opened=(stub.registration,), closed=(1,))
            _, without_settings = await asyncio.wait_for(announced.get(), DEADLINE_S)
            assert without_settings.settings is None
            assert without_settings.protocol_version is None
            assert without_settings.versions == ((3, 5), (3, 6))

    async def test_a_broker_that_refuses_is_asked_again_as_the_right_may_have_been_given(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(broker_settings, "SETTINGS_INTERVAL", 0.001)
        announced: asyncio.Queue[BrokerFacts] = asyncio.Queue()
        async with (
            StubBroker(1, protocol_version="3.9-IV0") as stub,
            channels(on_broker_facts=lambda _, facts: announced.put_nowait(facts)) as (manager, _),
        ):
            told, stub.configs = stub.configs, None
            manager.update(opened=(stub.registration,))
            assert (await asyncio.wait_for(announced.get(), DEADLINE_S)).settings is None
            asked = stub.connections
            await until(lambda: stub.connections, "more questions", until=lambda n: n > asked + 2)
            stub.configs = told
            facts = await asyncio.wait_for(announced.get(), DEADLINE_S)
            assert facts.settings is not None
            assert facts.protocol_version == (3, 9)
        assert caplog.messages.count("broker does not report its protocol version") == 1

    async def test_settings_that_change_while_a_broker_runs_are_announced(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Through the same connection. What it refuses to tell later on is as it was."""
        monkeypatch.setattr(broker_settings, "SETTINGS_INTERVAL", 0.001)
        announced: asyncio.Queue[BrokerFacts] = asyncio.Queue()
        async with (
            StubBroker(1, protocol_version="3.9-IV0") as stub,
            channels(on_broker_facts=lambda _, facts: announced.put_nowait(facts)) as (manager, _),
        ):
            manager.update(opened=(stub.registration,))
            assert (await asyncio.wait_for(announced.get(), DEADLINE_S)).settings is not None
            assert stub.configs is not None
            stub.configs = {**stub.configs, MIN_INSYNC_REPLICAS: "2"}
            facts = await asyncio.wait_for(announced.get(), DEADLINE_S)
            assert facts.settings is not None
            assert facts.settings[MIN_INSYNC_REPLICAS] == "2"
            stub.configs, before = None, stub.questions
            await until(lambda: stub.questions > before + 2, "more questions")
            assert manager.facts([stub.registration]) == [facts]
            assert manager.protocol_version()[:2] == (3, 9)
            assert announced.empty()
            assert stub.connections == 1
        assert "broker does not report its protocol version" not in caplog.messages

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
