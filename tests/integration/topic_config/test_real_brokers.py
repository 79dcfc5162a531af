"""Real brokers of each release with configurations written to ZooKeeper behind their back.

The classes of a release judge thousands of values elsewhere. Here a few values show that these
classes judge as the broker does: it starts with each configuration that Regent accepts, and with no
configuration that Regent refuses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator

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
from sandbox.waiting import DEADLINE_S
from tests.java.regenerate_topic_configs import version_of
from tests.support.soak import soak, versions

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

OLDEST, NEWEST = TESTED_VERSIONS[0], TESTED_VERSIONS[-1]

LOWERED = "lowered"
TOO_SMALL = {"segment.index.bytes": "4"}


def deadly(release: str) -> Iterator[dict[str, str]]:
    """Configurations that end every release, and those that end only some releases."""
    version = version_of(release)
    yield DEADLY[TESTED_VERSIONS.index(release) % len(DEADLY)]
    if version >= (3, 6):
        yield {"remote.storage.enable": "true"}
    if version < (2, 1):
        yield {"compression.type": "zstd"}


class Topics:
    """Topics of one partition on the only broker, written as nobody should write them."""

    def __init__(self, client: KazooClient, chroot: str) -> None:
        self._client = client
        self._chroot = chroot

    def create(self, topic: str, config: dict[str, str]) -> None:
        self._client.create(self._config(topic), _encoded(config), makepath=True)
        partitions = b'{"version": 1, "partitions": {"0": [1]}}'
        self._client.create(f"{self._chroot}/brokers/topics/{topic}", partitions, makepath=True)

    def set(self, topic: str, config: dict[str, str]) -> None:
        self._client.set(self._config(topic), _encoded(config))

    def _config(self, topic: str) -> str:
        return f"{self._chroot}/config/topics/{topic}"


def assert_does_not_start(broker: KafkaBroker, topics: Topics, config: dict[str, str]) -> None:
    """With the configuration of a topic that it has the log of; the topic gets another one then."""
    topics.set(LOWERED, config)
    with pytest.raises(ProcessDiedError):
        broker.start()
    topics.set(LOWERED, {})


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.fixture
def broker(
    zookeeper: ZooKeeper, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], tuple[KafkaBroker, Topics]]]:
    """Makes a broker of a release, not started, and its topics."""
    with contextlib.ExitStack() as stack:

        def make(release: str) -> tuple[KafkaBroker, Topics]:
            chroot = f"/{request.node.originalname}-{release}"
            client = KazooClient(zookeeper.connect_string)
            client.start(timeout=DEADLINE_S)
            stack.callback(client.close)
            stack.callback(client.stop)
            made = KafkaBroker(
                zookeeper=zookeeper.connect_string + chroot,
                version=release,
                session_timeout_ms=60_000,
            )
            stack.callback(made.close)
            return made, Topics(client, chroot)

        yield make


@pytest.mark.parametrize(
    "release", versions(OLDEST, NEWEST, others=sorted({*TESTED_VERSIONS} - {OLDEST, NEWEST}))
)
def test_a_broker_starts_with_what_is_accepted_and_not_with_what_is_refused(
    broker: Callable[[str], tuple[KafkaBroker, Topics]], release: str
) -> None:
    started, topics = broker(release)
    version = version_of(release)
    topics.create("odd", ODD_BUT_LEGAL)
    topics.create(LOWERED, {})
    started.start()
    told = asyncio.run(asked(started))
    assert (told.versions, told.protocol_version) == ((version,), version)
    assert told.settings is not None
    assert told.settings["log.retention.hours"] == "168"
    assert config_problems(ODD_BUT_LEGAL, [told]) == ()
    log = started.state_path / "data-1" / f"{LOWERED}-0"
    wait_until(log.exists, describe=f"{log} to be created", watch=[started])
    started.kill()

    configs = list(deadly(release))
    for config in configs:
        (problem,) = config_problems(config, [told])
        assert problem.is_certain
    assert_does_not_start(started, topics, configs[-1])


@soak("versions")
@pytest.mark.parametrize(
    ("release", "end"),
    [
        pytest.param("1.1.1", KafkaBroker.stop, id="1.1.1"),
        pytest.param("2.4.1", KafkaBroker.kill, id="2.4.1"),
        pytest.param("2.8.2", KafkaBroker.stop, id="2.8.2"),
        pytest.param("3.3.2", KafkaBroker.kill, id="3.3.2"),
        pytest.param("3.9.1", KafkaBroker.kill, id="3.9.1"),
    ],
)
def test_a_broker_starts_with_indexes_of_accepted_sizes_only(
    broker: Callable[[str], tuple[KafkaBroker, Topics]],
    release: str,
    end: Callable[[KafkaBroker], None],
) -> None:
    started, topics = broker(release)
    topics.create(LOWERED, {})
    started.start()
    told = asyncio.run(asked(started))
    KafkaTools(started.bootstrap_servers).produce(LOWERED, ["x" * 20_000] * 20)

    # The definition of the key allows the value; what opens the index does not.
    assert impossible_values(TOO_SMALL)
    topics.create("index", TOO_SMALL)
    wait_until(
        lambda: "Invalid max index size" in started.process.log_of_this_run(),
        describe="the broker to fail over the new topic",
        watch=[started],
    )
    end(started)
    with pytest.raises(ProcessDiedError):
        started.start()
    topics.set("index", {})

    # Kafka takes the value, and the broker that has the data does not start with it.
    lowered = {"segment.index.bytes": "36"}
    assert new_problems({}, lowered, [], changed=lowered)
    assert_does_not_start(started, topics, lowered)

    for config in deadly(release):
        assert_does_not_start(started, topics, config)

    smallest = {"segment.index.bytes": "3144972"}
    assert new_problems({}, smallest, [told], changed=smallest) == ()
    topics.set(LOWERED, smallest)
    started.start()


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
        return await asyncio.wait_for(learned.get(), timeout=DEADLINE_S)
    finally:
        manager.close_all()
        await manager.wait_closed()


def _encoded(config: dict[str, str]) -> bytes:
    return json.dumps({"version": 1, "config": config}).encode()
