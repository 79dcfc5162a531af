"""Real brokers of each release with configurations written to ZooKeeper behind their back.

The classes of a release judge thousands of values elsewhere; here a few show that they judge as the
broker does: it starts with what Regent accepts, and not with what Regent refuses.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from regent.model.cluster import Broker, EndPoint
from regent.model.topic_config import (
    BrokerFacts,
    config_problems,
    impossible_values,
    new_problems,
)
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.settings import ChannelSettings
from sandbox import (
    TESTED_VERSIONS,
    KafkaBroker,
    KafkaTools,
    ProcessDiedError,
    ZooKeeper,
    wait_until,
)
from tests.java.regenerate_topic_configs import version_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ODD_BUT_LEGAL = {
    "retention.ms": " +0086400000\t",
    "min.cleanable.dirty.ratio": "0x1p-1d",
    "preallocate": "FALSE",
    "cleanup.policy": " delete , compact ",
    "message.format.version": "1.0.foo",
    "leader.replication.throttled.replicas": "2147483647:2147483647,0:1",
    "follower.replication.throttled.replicas": "*",
    "unclean.leader.election.enable": " False ",
    "segment.bytes": "14",
}

DEADLY = (
    {"retention.ms": "\u00a05000"},
    {"min.cleanable.dirty.ratio": "\uff10.\uff15"},
    {"message.format.version": "2.99"},
    {"leader.replication.throttled.replicas": "99999999999:1"},
)


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


def deadly(release: str) -> Iterator[dict[str, str]]:
    """One that each release dies of, and those that only some do."""
    version = version_of(release)
    yield DEADLY[TESTED_VERSIONS.index(release) % len(DEADLY)]
    if version >= (3, 6):
        yield {"remote.storage.enable": "true"}
    if version < (2, 1):
        yield {"compression.type": "zstd"}


@pytest.mark.parametrize("release", TESTED_VERSIONS)
def test_a_broker_starts_with_what_is_accepted_and_not_with_what_is_refused(
    zookeeper: ZooKeeper, release: str
) -> None:
    connect_string = f"{zookeeper.connect_string}/kafka-{release}"
    version = version_of(release)
    client = KazooClient(connect_string)
    with KafkaBroker(zookeeper=connect_string, version=release) as broker:
        client.start()
        try:
            client.create("/config/topics/t", encoded(ODD_BUT_LEGAL))
            client.create(
                "/brokers/topics/t", b'{"version": 1, "partitions": {"0": [1]}}', makepath=True
            )
            told = asyncio.run(asked(broker))
            assert (told.versions, told.protocol_version) == ((version,), version)
            assert told.settings is not None
            assert told.settings["log.retention.hours"] == "168"
            assert config_problems(ODD_BUT_LEGAL, [told]) == ()
            broker.stop()
            broker.start()
            for config in deadly(release):
                (problem,) = config_problems(config, [told])
                assert problem.is_certain
                broker.stop()
                client.set("/config/topics/t", encoded(config))
                with pytest.raises(ProcessDiedError):
                    broker.start()
            client.set("/config/topics/t", encoded({}))
            broker.start()
        finally:
            client.stop()
            client.close()


@pytest.mark.parametrize("release", TESTED_VERSIONS)
def test_a_broker_does_not_start_with_an_index_that_has_no_room_for_an_entry(
    zookeeper: ZooKeeper, release: str
) -> None:
    """Its own definition allows the value; what opens the index does not."""
    connect_string = f"{zookeeper.connect_string}/index-{release}"
    config = {"segment.index.bytes": "4"}
    assert impossible_values(config)
    client = KazooClient(connect_string)
    with KafkaBroker(zookeeper=connect_string, version=release) as broker:
        client.start()
        try:
            client.create("/config/topics/t", encoded(config))
            client.create(
                "/brokers/topics/t", b'{"version": 1, "partitions": {"0": [1]}}', makepath=True
            )
            wait_until(
                lambda: "Invalid max index size" in broker.process.log_of_this_run(),
                timeout_s=60,
                describe="the broker to fail over the new topic",
                watch=[broker],
            )
            broker.stop()
            with pytest.raises(ProcessDiedError):
                broker.start()
        finally:
            client.stop()
            client.close()


@pytest.mark.parametrize("release", TESTED_VERSIONS)
def test_a_broker_does_not_start_with_an_index_that_has_become_too_small(
    zookeeper: ZooKeeper, release: str
) -> None:
    """Kafka takes the value, and the broker that has the data does not start with it."""
    connect_string = f"{zookeeper.connect_string}/lowered-{release}"
    lowered = {"segment.index.bytes": "36"}
    assert new_problems({}, lowered, [], changed=lowered)
    client = KazooClient(connect_string)
    with KafkaBroker(zookeeper=connect_string, version=release) as broker:
        client.start()
        try:
            for topic, stop in (("killed", broker.kill), ("stopped", broker.stop)):
                client.create(f"/config/topics/{topic}", encoded({}))
                client.create(
                    f"/brokers/topics/{topic}", b'{"version": 1, "partitions": {"0": [1]}}'
                )
                KafkaTools(broker.bootstrap_servers).produce(topic, ["x" * 20_000] * 20)
                client.set(f"/config/topics/{topic}", encoded(lowered))
                stop()
                with pytest.raises(ProcessDiedError):
                    broker.start()
                client.set(f"/config/topics/{topic}", encoded({}))
                broker.start()
            smallest = {"segment.index.bytes": "3144972"}
            assert new_problems({}, smallest, [asyncio.run(asked(broker))], changed=smallest) == ()
            client.set("/config/topics/stopped", encoded(smallest))
            broker.stop()
            broker.start()
        finally:
            client.stop()
            client.close()


async def asked(broker: KafkaBroker) -> BrokerFacts:
    """What a channel learns about a broker."""
    learned: asyncio.Queue[BrokerFacts] = asyncio.Queue()
    manager = ControllerChannelManager(
        controller_id=1_000_000_000,
        settings=ChannelSettings(),
        may_send=lambda: True,
        on_response=lambda _: None,
        on_failure=lambda _broker, _epoch, error: pytest.fail(str(error)),
        on_broker_facts=lambda _, facts: learned.put_nowait(facts),
    )
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", broker.port)
    manager.update(opened=[Broker(broker.broker_id, 1, (endpoint,))])
    try:
        return await asyncio.wait_for(learned.get(), timeout=30)
    finally:
        manager.close_all()
        await manager.wait_closed()


def encoded(config: dict[str, str]) -> bytes:
    return json.dumps({"version": 1, "config": config}).encode()
