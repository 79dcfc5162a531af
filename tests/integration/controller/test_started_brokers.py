"""What clients hear from a broker that has just started."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from sandbox.kafka_jars import version_tuple
from sandbox.waiting import DEADLINE_S
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.metadata import Connection, Metadata
from tests.support.reassigning import create_topic
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PARTITIONS = 600
"""The broker is busy with the leadership of so many for long enough to be asked meanwhile."""


def test_a_broker_that_has_started_denies_no_topic(cluster: Cluster) -> None:
    """Clients go on to the next broker as long as one names no brokers. When it does, they believe
    it: producers fail records of a topic that it does not name, groups give its partitions up."""
    denies_no_topic(cluster)


@soak("versions")
@pytest.mark.parametrize("version", ["1.1.1", "2.4.1"])
def test_a_broker_of_an_older_version_denies_no_topic(version: str) -> None:
    with cluster_of(version, brokers=2) as cluster:
        denies_no_topic(cluster)


def denies_no_topic(cluster: Cluster) -> None:
    with regent(cluster) as process:
        process.wait_until_active()
        create_topic(cluster, "many", {p: [1 + p % 2, 2 - p % 2] for p in range(PARTITIONS)})
        cluster.wait_for_consistency()
        broker = cluster.broker(1)
        broker.stop()
        broker.launch()
        denials = 0
        for metadata in answers(broker.port, cluster.kafka.version):
            named = sum(topic == "many" for topic, _ in metadata.partitions)
            assert named in (0, PARTITIONS)
            if named:
                break
            # A broker looks up topics before brokers, and can learn of both in between.
            denials += bool(metadata.brokers)
            assert denials <= 1
        cluster.wait_in_sync()


def answers(port: int, version: str) -> Iterator[Metadata]:
    """What the broker on a port answers to one client after the other, from its first answer on."""
    with contextlib.closing(Connection(port, version=version_tuple(version))) as connection:
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                yield connection.metadata()
            time.sleep(0.002)
    raise AssertionError("the broker does not name the topic")
