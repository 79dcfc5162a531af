"""What tests in pods share: a node, Kafka on it, and its ZooKeeper from outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from sandbox.node.cluster import NodeCluster
from sandbox.node.installation import KafkaPods
from sandbox.node.machine import obstacle


@pytest.fixture(scope="module")
def cluster() -> Iterator[NodeCluster]:
    if (reason := obstacle()) is not None:
        pytest.skip(f"no node on this machine: {reason}")
    with NodeCluster() as started:
        yield started


@pytest.fixture(scope="module")
def kafka(cluster: NodeCluster) -> KafkaPods:
    pods = KafkaPods(cluster)
    pods.deploy()
    return pods


@pytest.fixture(scope="module")
def zookeeper(kafka: KafkaPods) -> Iterator[KazooClient]:
    client = KazooClient(f"127.0.0.1:{kafka.service_port('zookeeper', 2181)}", timeout=30)
    client.start(timeout=60)
    yield client
    client.stop()
    client.close()
