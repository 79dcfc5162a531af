"""A KafkaTopic for a topic that brokers create themselves, on a cluster that does not have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import KafkaCluster, ZooKeeper
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster
from tests.support.resources import Resources, topic
from tests.support.znodes import Znodes

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("process")]

OFFSETS = "__consumer_offsets"


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeper) -> Iterator[Cluster]:
    """One broker that no client has used yet; its offsets topic shall have 5 partitions."""
    connect_string = f"{zookeeper.connect_string}/broker-created"
    with (
        KafkaCluster(
            zookeeper=connect_string,
            brokers=1,
            inter_broker_protocol_version="2.6",
            session_timeout_ms=SESSION_TIMEOUT_MS,
        ) as kafka,
        Znodes(connect_string) as znodes,
    ):
        cluster = Cluster(kafka, znodes)
        yield cluster
        cluster.close()


def offsets_topic() -> dict[str, Any]:
    """A KafkaTopic that only configures the topic of consumer groups."""
    body = topic("offsets")
    body["spec"] = {"topicName": OFFSETS, "config": {"segment.bytes": 1_000_000}}
    return body


def test_offsets_topic_is_configured_when_brokers_have_created_it(
    cluster: Cluster, resources: Resources
) -> None:
    resources.apply(offsets_topic(), topic("orders", partitions=1, replicas=1))
    resources.wait_ready("orders")
    resources.wait_for_condition("offsets", "Reconciling", "True", "LeftToBrokers")
    assert cluster.znodes.assignment(OFFSETS) is None

    cluster.tools.produce("orders", ["one", "two"], acks="all")
    assert cluster.tools.consume("orders", 2) == ["one", "two"]  # in a group
    resources.wait_ready("offsets")
    assert sorted(cluster.znodes.assignment(OFFSETS) or {}) == list(range(5))
    config = cluster.znodes.config(OFFSETS) or {}
    assert (config["segment.bytes"], config["cleanup.policy"]) == ("1000000", "compact")
