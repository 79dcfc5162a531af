"""A broker's controller has stored an assignment, and has left in the ISR who is not assigned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, regent
from tests.support.clusters import Clusters
from tests.support.reassigning import create_topic
from tests.support.soak import versions
from tests.support.workload import workload

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "moved"


@pytest.mark.parametrize("version", versions("3.9.1", others=("2.4.1", "2.8.2")))
def test_its_leader_goes_on_with_the_replicas_that_are_assigned(
    version: str, clusters: Clusters, tmp_path: Path
) -> None:
    cluster = clusters.healthy(version)
    create_topic(cluster, TOPIC, {0: [2, 3]})
    assign(cluster, [2, 1])
    assert cluster.znodes.state(TOPIC)["isr"] == [2, 3]
    with workload(cluster.tools, TOPIC, tmp_path) as producer, regent(cluster) as process:
        process.wait_until_active()
        cluster.wait_in_sync(TOPIC)
        producer.wait_for_progress()
        cluster.wait_for_consistency()
        epoch = cluster.znodes.state(TOPIC)["leader_epoch"]
        producer.wait_for_progress()
        assert cluster.znodes.state(TOPIC)["leader_epoch"] == epoch
    assert producer.failed() == []


def assign(cluster: Cluster, replicas: list[int]) -> None:
    """Store an assignment, and nothing else. The controller of a broker does not look at it."""
    path = f"/brokers/topics/{TOPIC}"
    node = cluster.znodes.json(path)
    node["partitions"]["0"] = replicas
    cluster.znodes.client.set(path, json.dumps(node).encode())
