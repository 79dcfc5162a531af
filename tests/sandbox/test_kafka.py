"""Brokers and Kafka's tools: what fails is named. All integration tests use the rest."""

from collections.abc import Iterator

import pytest

from sandbox import KafkaBroker, KafkaTools, ProcessDiedError, ZooKeeper
from sandbox.errors import ToolError, UnknownToolError, VersionError
from sandbox.kraft_controller import KRaftController
from tests.support.soak import soak

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


def test_broker_that_cannot_start_fails_at_once_with_its_log() -> None:
    broker = KafkaBroker(zookeeper="127.0.0.1:1", config={"num.io.threads": -1})
    with pytest.raises(
        ProcessDiedError, match=r"(?s)broker-1 died while waiting.*num\.io\.threads"
    ):
        broker.__enter__()
    assert not broker.state_path.exists()


def test_tool_that_cannot_run_is_named() -> None:
    with pytest.raises(UnknownToolError, match="no tool 'kafka-missing'"):
        KafkaTools("127.0.0.1:1").run("kafka-missing")
    with pytest.raises(VersionError, match="needs the address of ZooKeeper"):
        KafkaTools("127.0.0.1:1", version="1.1.1").topics("--list")


@soak("sandbox")
def test_tool_that_fails_says_why(zookeeper: ZooKeeper) -> None:
    with KafkaBroker(zookeeper=f"{zookeeper.connect_string}/tools") as broker:
        tools = KafkaTools(broker.bootstrap_servers)
        with pytest.raises(ToolError, match="kafka-topics"):
            tools.create_topic("t", replication_factor=3)
        tools.create_topic("t")
        with pytest.raises(ToolError, match="consumed 0 of 1 messages"):
            tools.consume("t", 1, timeout_s=0.5)


@soak("sandbox")
def test_cluster_id_may_begin_with_a_hyphen(zookeeper: ZooKeeper) -> None:
    """Brokers draw such an id once in 64 times."""
    cluster_id = "-mJ3xk8uQF2vYw1rT5zB0A"
    chroot = f"{zookeeper.connect_string}/hyphen"
    with KRaftController(zookeeper=chroot, cluster_id=cluster_id) as controller:
        stored = controller.state_path / "data" / "meta.properties"
        assert f"cluster.id={cluster_id}" in stored.read_text().splitlines()
