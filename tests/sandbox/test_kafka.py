"""Real brokers of every supported version."""

from collections.abc import Iterator

import pytest

from sandbox import (
    TESTED_VERSIONS,
    KafkaBroker,
    KafkaCluster,
    KafkaTools,
    ProcessDiedError,
    ZooKeeper,
    wait_until,
)
from sandbox.errors import ToolError, UnknownToolError, VersionError
from sandbox.kraft_controller import KRaftController

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


def test_three_brokers_form_a_cluster_that_takes_and_gives_messages(zookeeper: ZooKeeper) -> None:
    with KafkaCluster(
        zookeeper=f"{zookeeper.connect_string}/three",
        brokers=3,
        inter_broker_protocol_version="2.6",
        racks=["a", "b"],
        session_timeout_ms=2000,
    ) as cluster:
        tools = KafkaTools(cluster.bootstrap_servers)
        tools.create_topic("t", partitions=3, replication_factor=3)
        messages = [f"message {number}" for number in range(10)]
        tools.produce("t", messages, acks="all")
        assert sorted(tools.consume("t", 10)) == sorted(messages)

        cluster.broker(3).kill()
        survivors = [cluster.broker(1), cluster.broker(2)]
        wait_until(
            lambda: tools.topics("--describe", "--topic=t", "--unavailable-partitions").strip(),
            until=lambda described: described == "",
            timeout_s=60,
            describe="every partition to have a leader without broker 3",
            watch=survivors,
        )
        cluster.start()  # brings back what does not run
        tools.produce("t", ["one more"])
        assert len(tools.consume("t", 11)) == 11
        with pytest.raises(LookupError, match="no broker 4"):
            cluster.broker(4)


def test_a_killed_broker_can_be_started_at_once(zookeeper: ZooKeeper) -> None:
    broker = KafkaBroker(zookeeper=f"{zookeeper.connect_string}/again", session_timeout_ms=3000)
    with broker:
        assert broker.is_registered
        broker.kill()
        assert broker.is_registered
        broker.start()
        assert broker.is_registered
        broker.stop()
        assert not broker.is_registered


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_every_version_serves_a_topic_and_restarts(version: str, zookeeper: ZooKeeper) -> None:
    chroot = f"{zookeeper.connect_string}/v{version}"
    with KafkaBroker(zookeeper=chroot, version=version) as broker:
        tools = KafkaTools(broker.bootstrap_servers, version=version, zookeeper=chroot)
        tools.create_topic("t", partitions=2, config={"retention.ms": "60000"})
        assert tools.topics("--list").split() == ["t"]
        tools.produce("t", ["a", "b"])
        broker.restart()
        assert sorted(tools.consume("t", 2)) == ["a", "b"]


def test_a_cluster_id_may_begin_with_a_hyphen(zookeeper: ZooKeeper) -> None:
    """As one of 64 does that a broker has drawn."""
    cluster_id = "-mJ3xk8uQF2vYw1rT5zB0A"
    chroot = f"{zookeeper.connect_string}/hyphen"
    with KRaftController(zookeeper=chroot, cluster_id=cluster_id) as controller:
        stored = controller.state_path / "data" / "meta.properties"
        assert f"cluster.id={cluster_id}" in stored.read_text().splitlines()


def test_a_broker_is_upgraded_on_the_same_directories(zookeeper: ZooKeeper) -> None:
    chroot = f"{zookeeper.connect_string}/upgraded"
    with KafkaBroker(
        zookeeper=chroot, version="2.4.1", inter_broker_protocol_version="2.4"
    ) as broker:
        tools = KafkaTools(broker.bootstrap_servers)
        tools.create_topic("t")
        tools.produce("t", ["a"])
        with pytest.raises(RuntimeError, match="is running; stop it"):
            broker.change_version("3.9.1")
        broker.stop()
        with pytest.raises(VersionError, match="no ZooKeeper mode"):
            broker.change_version("4.0.0")
        assert broker.version == "2.4.1"
        broker.change_version("3.9.1")
        broker.start()
        assert "Kafka version: 3.9.1" in broker.process.log_of_this_run()
        assert "Kafka version: 2.4.1" in broker.log_path.read_text()
        tools.produce("t", ["b"])
        assert tools.consume("t", 2) == ["a", "b"]


def test_the_oldest_version_speaks_its_own_protocol_on_its_own_zookeeper() -> None:
    with (
        ZooKeeper(version="1.1.1") as zookeeper,
        KafkaBroker(
            zookeeper=zookeeper.connect_string,
            version="1.1.1",
            inter_broker_protocol_version="1.1",
        ) as broker,
    ):
        assert "inter.broker.protocol.version = 1.1\n" in broker.process.log_of_this_run()


def test_a_broker_that_cannot_start_fails_at_once_with_its_log(zookeeper: ZooKeeper) -> None:
    broker = KafkaBroker(
        zookeeper=f"{zookeeper.connect_string}/broken", config={"num.io.threads": -1}
    )
    with pytest.raises(
        ProcessDiedError, match=r"(?s)broker-1 died while waiting.*num\.io\.threads"
    ):
        broker.__enter__()
    assert not broker.state_path.exists()


def test_a_tool_that_fails_says_why(zookeeper: ZooKeeper) -> None:
    with KafkaBroker(zookeeper=f"{zookeeper.connect_string}/tools") as broker:
        tools = KafkaTools(broker.bootstrap_servers)
        with pytest.raises(ToolError, match="kafka-topics"):
            tools.create_topic("t", replication_factor=3)
        tools.create_topic("t")
        with pytest.raises(ToolError, match="consumed 0 of 1 messages"):
            tools.consume("t", 1, timeout_s=0.5)
        tools.produce("t", ["recorded"])
        assert "recorded" in tools.dump_log(broker.state_path / "data-1" / "t-0" / f"{0:020}.log")
    with pytest.raises(UnknownToolError, match="no tool 'kafka-unheard-of'"):
        tools.run("kafka-unheard-of")
    with pytest.raises(VersionError, match="needs the address of ZooKeeper"):
        KafkaTools("127.0.0.1:1", version="1.1.1").topics("--list")
