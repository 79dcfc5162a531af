"""Real brokers at their own protocol version, which the tests of the whole folder share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sandbox.kafka_jars import DEFAULT_VERSION
from sandbox.regent_process import RegentProcess
from tests.integration.endpoint.clients_support import ServedCluster, served_cluster
from tests.integration.endpoint.secured_support import SecuredCluster, secured_cluster
from tests.support.cluster import Cluster, regent
from tests.support.clusters import Clusters
from tests.support.soak import versions


@pytest.fixture(scope="package")
def clusters() -> Iterator[Clusters]:
    """Clusters whose brokers have their own highest protocol version."""
    with contextlib.closing(Clusters()) as started:
        yield started


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> str:
    """The version of the brokers: the newest one, or the one that ``brokers_of`` names."""
    return str(getattr(request, "param", DEFAULT_VERSION))


@pytest.fixture(scope="module")
def cluster(version: str, clusters: Clusters) -> Cluster:
    """Shared brokers, healthy and without topics when the module begins."""
    return clusters.healthy(version)


@pytest.fixture
def process(cluster: Cluster) -> Iterator[RegentProcess]:
    """A Regent that leads the cluster, which is healthy before."""
    cluster.restore()
    with regent(cluster) as started:
        started.wait_until_active()
        yield started


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[ServedCluster]:
    """The shared brokers, led by a Regent that clients see."""
    with served_cluster(cluster) as started:
        yield started


@pytest.fixture(scope="package", params=versions("3.9.1", others=("2.8.2",)))
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    """Three brokers with TLS, SASL and access control lists everywhere."""
    directory = tmp_path_factory.mktemp("secured")
    with secured_cluster(request.param, directory) as started:
        yield started
