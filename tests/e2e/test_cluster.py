"""Regent as users run it: its own image, installed by Helm into a cluster in which pods run.

The tests follow the life of one installation, in the order of the file.
``test_cluster_spark.py`` also kills pods, and removes the installation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from sandbox import ManagedProcess, wait_until
from sandbox.node.installation import BOOTSTRAP_SERVERS, BROKER_PODS, KafkaPods, RegentRelease
from tests.support.cluster_znodes import controller, leaderships
from tests.support.helm_chart import ROOT
from tests.support.soak import soak

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    soak("demo"),
]

TOPIC = "orders"


@pytest.fixture(scope="module")
def regent(kafka: KafkaPods) -> RegentRelease:
    release = RegentRelease(kafka)
    release.install()
    return release


@pytest.fixture(scope="module")
def topic(regent: RegentRelease, kafka: KafkaPods) -> str:
    """A topic of three replicas, of a KafkaTopic."""
    kafka.kubectl("apply", "-f", ROOT / "examples" / "kafkatopic.yaml")
    kafka.kubectl("wait", "--for=condition=Ready", "--timeout=120s", f"ktopic/{TOPIC}")
    return TOPIC


def test_pods_are_ready_in_a_restricted_namespace(
    regent: RegentRelease, zookeeper: KazooClient
) -> None:
    pods = regent.pods()
    assert len(pods) == 2
    active = regent.active()
    assert regent.status(active)["controllerId"] == controller(zookeeper)
    assert [pod for pod in pods if regent.status(pod)["isActive"]] == [active]


def test_nothing_has_failed_inside_the_pods(regent: RegentRelease, topic: str) -> None:
    """What only a container shows: a user without a name, a root that is read-only, few rights."""
    assert [line for pod in regent.pods() for line in regent.logged(pod, "ERROR")] == []


def test_a_topic_is_served(kafka: KafkaPods, topic: str) -> None:
    messages = [f"message {number}" for number in range(100)]
    kafka.tool(
        *("kafka-console-producer", "--topic", topic, "--request-required-acks", "all"),
        stdin="".join(f"{message}\n" for message in messages),
    )
    consumed = kafka.tool(
        *("kafka-console-consumer", "--topic", topic, "--from-beginning"),
        *("--max-messages", "100", "--timeout-ms", "60000"),
    )
    assert sorted(consumed.splitlines()) == sorted(messages)


class Producing:
    """Records that are written with acks=all in the pod of a broker, all the time."""

    def __init__(self, kafka: KafkaPods, topic: str, log: Any) -> None:
        cluster = kafka.cluster
        self._process = ManagedProcess(
            "kafka-verifiable-producer",
            [
                *(cluster.binaries.path("kubectl"), "--kubeconfig", cluster.kubeconfig),
                *("--namespace", kafka.namespace, "exec", BROKER_PODS[1], "--"),
                *("timeout", "--signal=INT", "600"),
                *("kafka-verifiable-producer", "--bootstrap-server", BOOTSTRAP_SERVERS),
                *("--topic", topic, "--acks", "-1", "--throughput", "50"),
                *("--max-messages", "-1"),
            ],
            log_path=log,
        )

    def start(self) -> None:
        self._process.start()
        wait_until(
            self.acknowledged,
            describe="records to be acknowledged",
            watch=[self._process],
        )

    def acknowledged(self) -> int:
        return self._process.log_of_this_run().count('"producer_send_success"')

    def failures(self) -> list[str]:
        lines = self._process.log_of_this_run().splitlines()
        return [line for line in lines if "producer_send_error" in line]

    def stop(self) -> None:
        self._process.kill()


@pytest.fixture
def producing(
    kafka: KafkaPods, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Producing]:
    producer = Producing(kafka, topic, tmp_path_factory.mktemp("producer") / "log")
    producer.start()
    yield producer
    producer.stop()


def test_an_upgrade_leaves_kafka_to_regent(
    regent: RegentRelease, kafka: KafkaPods, zookeeper: KazooClient, producing: Producing
) -> None:
    """All pods are replaced: no broker becomes the controller, no partition loses its leader."""
    pods, elections = regent.pods(), kafka.elections_of_brokers()
    before, acknowledged = leaderships(zookeeper), producing.acknowledged()
    assert before
    regent.upgrade(podAnnotations={"changed": "yes"})
    active = regent.active()
    assert not set(pods) & set(regent.pods())
    assert regent.status(active)["controllerId"] == controller(zookeeper)
    assert kafka.elections_of_brokers() == elections
    assert leaderships(zookeeper) == before
    assert producing.acknowledged() > acknowledged
    assert producing.failures() == []
