"""Real brokers at their own protocol version, one cluster for each Kafka version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import TESTED_VERSIONS
from sandbox.regent_process import RegentProcess
from tests.integration.controller.cluster import Cluster, cluster_of, regent


@pytest.fixture(scope="module", params=TESTED_VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers, which create topics by themselves."""
    with cluster_of(
        request.param,
        inter_broker_protocol=None,
        auto_create_topics_enable=True,
        default_replication_factor=2,
        num_partitions=6,
    ) as started:
        started.wait_for_a_broker_as_controller()
        yield started


@pytest.fixture
def process(cluster: Cluster) -> Iterator[RegentProcess]:
    """A Regent that leads the cluster, which is healthy before."""
    cluster.restore()
    with regent(cluster) as started:
        started.wait_until_active()
        yield started
