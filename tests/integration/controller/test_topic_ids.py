"""Topics of brokers that were downgraded keep their ids when an old tool rewrites their nodes."""

from __future__ import annotations

import json
import uuid

import pytest

from regent.model.topic import topic_id_to_text
from regent.zk_data.topic_ids import TOPIC_IDS
from sandbox import KafkaTools
from tests.support.cluster import Cluster, regent

pytestmark = [pytest.mark.integration, pytest.mark.slow]

IDS = {name: topic_id_to_text(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in ("seen", "unseen")}


def test_an_old_tool_costs_no_topic_its_id_whether_regent_runs_or_not(cluster: Cluster) -> None:
    old = KafkaTools(
        cluster.kafka.bootstrap_servers, version="2.4.1", zookeeper=cluster.kafka.zookeeper
    )
    for topic, topic_id in IDS.items():
        content = {
            "version": 3,
            "topic_id": topic_id,
            "partitions": {"0": [1, 2]},
            "adding_replicas": {},
            "removing_replicas": {},
        }
        cluster.znodes.client.create(f"/brokers/topics/{topic}", json.dumps(content).encode())
    with regent(cluster) as process:
        process.wait_until_active()
        cluster.wait(
            lambda: cluster.znodes.children(TOPIC_IDS),
            "the ids to be noted",
            until=lambda notes: len(notes) == len(IDS),
        )
        grow(old, cluster, "seen")
        wait_for_id(cluster, "seen")
        cluster.wait_for_leader("seen", 2, partition=1)
        cluster.wait(
            lambda: "controllerstats_restoredtopicids_total 1.0" in process.metrics(),
            "the id that was put back to be counted",
        )
    cluster.wait_for_a_broker_as_controller()
    grow(old, cluster, "unseen")
    assert "topic_id" not in cluster.znodes.json("/brokers/topics/unseen")
    with regent(cluster, name="another") as process:
        process.wait_until_active()
        wait_for_id(cluster, "unseen")
        cluster.wait_for_consistency()


def grow(tools: KafkaTools, cluster: Cluster, topic: str) -> None:
    """Add a partition by writing ZooKeeper, as tools did up to Kafka 2.8."""
    tools.run(
        "kafka-topics",
        f"--zookeeper={cluster.kafka.zookeeper}",
        "--alter",
        f"--topic={topic}",
        "--partitions=2",
        "--replica-assignment=1:2,2:1",
    )


def wait_for_id(cluster: Cluster, topic: str) -> None:
    node = cluster.wait(
        lambda: cluster.znodes.json(f"/brokers/topics/{topic}"),
        f"{topic} to have its id",
        until=lambda node: "topic_id" in node,
    )
    assert node["topic_id"] == IDS[topic]
    assert node["partitions"] == {"0": [1, 2], "1": [2, 1]}
