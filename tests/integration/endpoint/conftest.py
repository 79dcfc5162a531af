"""Real brokers at their own protocol version, one cluster for each Kafka version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.regent_process import RegentProcess
from tests.integration.controller.cluster import Cluster, cluster_of, regent
from tests.integration.endpoint.secured_support import SecuredCluster, secured_cluster
from tests.support.soak import versions


@pytest.fixture(
    scope="module", params=versions("1.1.1", "2.8.2", "3.9.1", others=("2.4.1", "3.3.2"))
)
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


@pytest.fixture(scope="package", params=versions("3.9.1", others=("2.8.2",)))
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    """Three brokers with TLS, SASL and access control lists everywhere."""
    directory = tmp_path_factory.mktemp("secured")
    with secured_cluster(request.param, directory) as started:
        yield started
