"""Real brokers at their own protocol version, which the tests of the whole folder share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sandbox.kafka_jars import DEFAULT_VERSION
from sandbox.regent_process import RegentProcess
from tests.integration.endpoint.clients_support import ServedCluster, served_cluster
from tests.integration.endpoint.secured_support import SecuredCluster, secured_cluster
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.lasting_threads import lasting_threads
from tests.support.soak import versions


class Clusters:
    """Three brokers of a Kafka version, which create topics by themselves.

    Brokers of the newest version run until the end. Brokers of another version run until a test
    needs a third version.
    """

    def __init__(self) -> None:
        self._newest = contextlib.ExitStack()
        self._other = contextlib.ExitStack()
        self._running: dict[str, Cluster] = {}

    def healthy(self, version: str) -> Cluster:
        """All brokers run, one of them is the controller, and there are internal topics only."""
        if version in self._running:
            cluster = self._running[version]
            cluster.restore()
            cluster.delete_topics()
            return cluster
        stack = self._newest
        if version != DEFAULT_VERSION:
            self._running = {v: c for v, c in self._running.items() if v == DEFAULT_VERSION}
            self._other.close()
            stack = self._other
        with lasting_threads():
            cluster = self._running[version] = stack.enter_context(
                cluster_of(
                    version,
                    inter_broker_protocol=None,
                    auto_create_topics_enable=True,
                    default_replication_factor=2,
                    num_partitions=6,
                )
            )
        cluster.wait_for_a_broker_as_controller()
        return cluster

    def close(self) -> None:
        with self._newest, self._other:
            self._running.clear()


@pytest.fixture(scope="package")
def clusters() -> Iterator[Clusters]:
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
