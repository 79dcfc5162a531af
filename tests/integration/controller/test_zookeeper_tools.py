"""Topics by Kafka's own tool that writes to ZooKeeper (until 2.8), while Regent leads.

Its reassignments and elections are tested with those of everybody else.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import KafkaTools
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, regent
from tests.support.reassigning import hosts
from tests.support.soak import versions

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def process(cluster: Cluster) -> Iterator[RegentProcess]:
    with regent(cluster) as started:
        started.wait_until_active()
        yield started


@pytest.mark.parametrize("version", versions("2.8.2", others=("1.1.1", "2.4.1")))
def test_topics_are_created_grown_configured_and_deleted(
    cluster: Cluster, process: RegentProcess, version: str
) -> None:
    topic, znodes = f"all-its-life-by-tool-{version}", cluster.znodes
    tools = KafkaTools("", version=version)

    def run(*arguments: str) -> str:
        address = f"--zookeeper={cluster.kafka.zookeeper}"
        return tools.run("kafka-topics", address, f"--topic={topic}", *arguments).stdout

    run("--create", "--partitions=2", "--replication-factor=2", "--config=retention.ms=86400000")
    cluster.wait_in_sync(topic)
    assert znodes.config(topic) == {"retention.ms": "86400000"}
    assert run("--describe").count("Leader: ") == 2
    cluster.tools.produce(topic, ["before"])

    run("--alter", "--partitions=5")
    cluster.wait(
        lambda: znodes.states(topic),
        "five partitions with leaders",
        until=lambda states: len([s for s in states.values() if s.get("leader", -1) > 0]) == 5,
    )
    cluster.wait_in_sync(topic)
    cluster.wait_for_consistency()
    assert cluster.tools.consume(topic, 1) == ["before"]
    assert all(len(hosts(cluster, topic, partition)) == 2 for partition in range(5))

    run("--delete")
    cluster.wait(lambda: znodes.get(f"/admin/delete_topics/{topic}") is None, "the deletion")
    assert znodes.assignment(topic) is None
    assert znodes.config(topic) is None
    cluster.wait(
        lambda: [p for p in range(5) if hosts(cluster, topic, p)],
        "the replicas to be gone",
        until=lambda left: not left,
    )
    cluster.wait_for_consistency()
    assert (process.status() or {})["isActive"]
