"""One real environment for all tests of the whole process; each test finds it healthy."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import KafkaCluster, KubernetesApi, ZooKeeper
from sandbox.definitions import apply_definitions
from sandbox.regent_process import RegentProcess
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, regent
from tests.support.clusters import Clusters
from tests.support.resources import Resources
from tests.support.znodes import Znodes

ROOT = Path(__file__).parents[3]

_AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  resources: [{group: kafka.regent.dev}]
- level: None
"""

_namespaces = itertools.count(1)


@pytest.fixture(scope="package")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the API server writes down who did what to custom resources: a JSON object a line."""
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="package")
def kubernetes(audit_log: Path) -> Iterator[KubernetesApi]:
    """An API server with Regent's CRDs, and a user for each of two Regents."""
    policy = audit_log.with_name("policy.yaml")
    policy.write_text(_AUDIT_POLICY)
    with KubernetesApi(
        users={"regent-a": ["system:masters"], "regent-b": ["system:masters"]},
        api_server_arguments=[
            f"--audit-policy-file={policy}",
            f"--audit-log-path={audit_log}",
            "--audit-log-mode=blocking",
        ],
    ) as api:
        apply_definitions(api.kubectl, ROOT / "crds")
        yield api


@pytest.fixture(scope="package")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.fixture(scope="package")
def clusters() -> Iterator[Clusters]:
    """Clusters whose brokers have their own highest protocol version."""
    with contextlib.closing(Clusters()) as started:
        yield started


@pytest.fixture(scope="package")
def kafka_and_znodes(zookeeper: ZooKeeper) -> Iterator[Cluster]:
    # A server that is starting can lose a client's first request. With one address the client waits
    # for the answer as long as its session lasts, with three for a third of that, as it does with
    # an ensemble.
    addresses = ",".join([zookeeper.connect_string] * 3)
    connect_string = f"{addresses}/kafka"
    with (
        KafkaCluster(
            zookeeper=connect_string,
            brokers=3,
            inter_broker_protocol_version="2.6",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            log_directories=2,
            # a broker's controller would move leaders five seconds after its election
            config={"auto.leader.rebalance.enable": False},
            # the brokers' logs show the sender of each request
            log_levels={"state.change.logger": "INFO"},
        ) as kafka,
        Znodes(connect_string) as znodes,
    ):
        cluster = Cluster(kafka, znodes)
        yield cluster
        cluster.close()


@pytest.fixture(scope="module")
def cluster(kafka_and_znodes: Cluster, zookeeper: ZooKeeper) -> Cluster:
    """Three brokers, healthy when a module of tests begins: one of them is the controller, and
    no topics but internal ones, so names that other modules use are free."""
    assert zookeeper.is_running, f"ZooKeeper has ended:\n{zookeeper.process.log_tail()}"
    kafka_and_znodes.clear()
    return kafka_and_znodes


@pytest.fixture(scope="module")
def resources(kubernetes: KubernetesApi) -> Resources:
    """A namespace for the tests of a module."""
    return Resources(kubernetes, f"test-{next(_namespaces)}")


@pytest.fixture(scope="module")
def process(cluster: Cluster, resources: Resources) -> Iterator[RegentProcess]:
    """A Regent that is the controller and serves the module's namespace."""
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as started:
        started.wait_until_active()
        yield started
