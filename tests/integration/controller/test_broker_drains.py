"""BrokerDrains against real brokers and a real API server: four brokers in two racks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from regent.model.topic_config import MIN_INSYNC_REPLICAS
from sandbox import KafkaCluster, ZooKeeper
from sandbox.errors import SandboxError
from sandbox.regent_process import RegentProcess
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, regent
from tests.support.reassigning import create_topic, under_way, wait_for_hosts
from tests.support.resources import Resources, condition
from tests.support.soak import soak
from tests.support.throttling import held_back
from tests.support.znodes import Znodes

pytestmark = [pytest.mark.integration]

RACKS = {1: "a", 2: "b", 3: "a", 4: "b"}


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeper) -> Iterator[Cluster]:
    """Brokers that no other test has topics on: a drain moves everything."""
    connect_string = f"{zookeeper.connect_string}/drains"
    with (
        KafkaCluster(
            zookeeper=connect_string,
            brokers=4,
            racks=("a", "b"),
            inter_broker_protocol_version="2.6",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            config={"auto.leader.rebalance.enable": False},
        ) as kafka,
        Znodes(connect_string) as znodes,
    ):
        cluster = Cluster(kafka, znodes)
        yield cluster
        cluster.close()


@pytest.fixture(scope="module")
def drains(resources: Resources) -> Resources:
    """The BrokerDrains of the module's namespace."""
    return resources.of("drain")


@pytest.fixture(scope="module")
def process(cluster: Cluster, resources: Resources) -> Iterator[RegentProcess]:
    """A Regent that is the controller and serves the module's namespace; a test kills it."""
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as started:
        started.wait_until_active()
        yield started


def drain_of(name: str, *brokers: int, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "BrokerDrain",
        "metadata": {"name": name},
        "spec": {"brokers": list(brokers), **spec},
    }


def configure_all_brokers(cluster: Cluster, *change: str) -> None:
    """Change the configuration that all brokers have while they run."""
    cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.tools.bootstrap_servers}",
        "--alter",
        "--entity-type=brokers",
        "--entity-default",
        *change,
    )


def assignments(cluster: Cluster, *topics: str) -> dict[tuple[str, int], list[int]]:
    return {
        (topic, partition): replicas
        for topic in topics
        for partition, replicas in (cluster.znodes.assignment(topic) or {}).items()
    }


def test_a_drained_broker_can_be_stopped_for_good_and_the_drain_be_undone(
    cluster: Cluster, drains: Resources, resources: Resources, process: RegentProcess
) -> None:
    before = {p: [4, 1] if p % 2 else [3, 4] for p in range(20)}
    create_topic(cluster, "moved", before)
    create_topic(cluster, "still", {0: [1, 2]})
    drains.apply(drain_of("four", 4, concurrency={"total": 3}))
    cluster.wait(
        lambda: drains.get("four").get("status", {}).get("progress", {}).get("done", 0) >= 2,
        "moves to have arrived",
        interval_s=0.05,
    )
    cluster.kill_regent(process)
    process.start()
    process.wait_until_active()
    status = drains.wait_until_true("four", "Drained")
    assert status["remaining"] == {"leaders": 0, "replicas": 0}
    assert status["summary"] == "20/20"
    after = assignments(cluster, "moved", "still")
    wait_for_hosts(cluster, after)
    for (topic, partition), replicas in after.items():
        assert 4 not in replicas
        origin = before[partition] if topic == "moved" else [1, 2]
        kept = [RACKS[b] for b in origin]
        assert len({RACKS[b] for b in replicas}) == len(set(kept)), (topic, partition, replicas)

    resources.apply(
        {
            "apiVersion": "kafka.regent.dev/v1alpha1",
            "kind": "KafkaTopic",
            "metadata": {"name": "new"},
            "spec": {"partitions": 6, "replicas": 2},
        }
    )
    resources.wait_ready("new")
    assert all(4 not in each for each in assignments(cluster, "new").values())
    cluster.broker(4).stop()
    cluster.wait_in_sync("moved", "still", "new")
    assert condition(drains.get("four"), "Drained")["status"] == "True"

    cluster.broker(4).start()
    cluster.wait(cluster.znodes.broker_ids, "broker 4 to be back", until=lambda ids: 4 in ids)
    drains.patch("four", desiredState="Undone")
    drains.wait_for_condition("four", "Ready", "True", "DrainUndone")
    assert cluster.znodes.assignment("moved") == before
    cluster.wait_in_sync("moved")
    drains.delete("four")


def test_a_drain_goes_on_without_a_receiving_broker_once_that_is_drained_too(
    cluster: Cluster, drains: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "received", {p: [4, 1] for p in range(4)})
    with held_back(cluster, "received", 2):
        drains.apply(drain_of("four", 4, racks="Ignore"))
        cluster.wait(
            lambda: list(under_way(cluster, "received").get("adding_replicas", {}).values()),
            "replicas to be on their way to broker 2",
            until=lambda adding: [2] in adding,
        )
        cluster.broker(2).pause()
        cluster.broker(2).end_session()
        drains.wait_for_condition("four", "Ready", "False", "BrokersUnavailable")
        drains.apply(drain_of("two", 2, racks="Ignore"))
        drains.wait_until_true("four", "Drained")
        drains.wait_until_true("two", "Drained")
    for replicas in (cluster.znodes.assignment("received") or {}).values():
        assert {2, 4}.isdisjoint(replicas), replicas
    drains.delete("four", "two")
    cluster.broker(2).resume()
    cluster.wait(cluster.znodes.broker_ids, "broker 2 to be back", until=lambda ids: 2 in ids)
    cluster.wait_in_sync("received")


def test_a_broker_that_nobody_has_heard_of_is_drained_at_once(
    drains: Resources, process: RegentProcess
) -> None:
    """Its cordon changes nothing about the brokers that are alive."""
    drains.apply(drain_of("unknown", 77))
    drains.wait_until_true("unknown", "Drained")
    drains.delete("unknown")


def test_leaders_leave_for_a_maintenance_and_what_would_fail_is_named(
    cluster: Cluster, drains: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "led", {p: [2, 1, 4] for p in range(6)})
    create_topic(cluster, "single", {0: [2]})
    drains.apply(drain_of("two", 2, mode="Leadership"))
    drains.wait_for_condition("two", "Stalled", "True", "BelowMinInsyncReplicas")
    status = drains.get("two")["status"]
    assert [(b["topic"], b["partition"]) for b in status["blockers"]] == [("single", 0)]
    leaders = {p: cluster.znodes.state("led", p)["leader"] for p in range(6)}
    assert leaders == dict.fromkeys(range(6), 1)
    assert condition(drains.get("two"), "Drained")["status"] == "False"

    cluster.znodes.client.create("/admin/delete_topics/single")
    status = drains.wait_until_true("two", "Drained")
    assert status.get("blockers", []) == []
    assert cluster.znodes.assignment("led") == {p: [1, 4, 2] for p in range(6)}
    drains.patch("two", desiredState="Undone")
    drains.wait_for_condition("two", "Ready", "True", "DrainUndone")
    assert cluster.znodes.assignment("led") == {p: [2, 1, 4] for p in range(6)}
    for p in range(6):
        cluster.wait_for_leader("led", 2, p)
    drains.delete("two")


@soak("controller")  # the brokers are asked once in a minute
def test_brokers_that_need_more_replicas_in_sync_by_now_are_not_drained_any_more(
    cluster: Cluster, drains: Resources, process: RegentProcess
) -> None:
    """``min.insync.replicas`` of the brokers is changed while they run."""
    create_topic(cluster, "pair", {0: [1, 2]})
    drains.apply(drain_of("two", 2, mode="Leadership"))
    drains.wait_until_true("two", "Drained")
    configure_all_brokers(cluster, "--add-config", f"{MIN_INSYNC_REPLICAS}=2")
    drains.wait_for_condition("two", "Drained", "False", "BelowMinInsyncReplicas")
    configure_all_brokers(cluster, "--delete-config", MIN_INSYNC_REPLICAS)
    drains.wait_until_true("two", "Drained")
    drains.delete("two")


def test_what_cannot_be_is_refused_and_nothing_is_moved(
    cluster: Cluster, drains: Resources, process: RegentProcess
) -> None:
    for spec, text in (
        ({"mode": "All"}, "Unsupported value"),
        ({"broker": 1}, 'unknown field "spec.broker"'),
        ({"timeoutSeconds": 0}, "greater than or equal to 1"),
    ):
        with pytest.raises(SandboxError, match=re.escape(text)):
            drains.create(drain_of("bad", 1, **spec))
    with pytest.raises(SandboxError, match="Duplicate value"):
        drains.create(drain_of("bad", 1, 1))
    create_topic(cluster, "everywhere", {0: [1, 2, 3, 4], 1: [3, 4]})
    before = assignments(cluster, "everywhere", "led")
    drains.apply(drain_of("both", 2, 4))
    drains.wait_for_condition("both", "Stalled", "True", "RacksLost")
    found = {
        (b["topic"], b["partition"]): b["reason"] for b in drains.get("both")["status"]["blockers"]
    }
    assert found[("everywhere", 0)] == "NotEnoughBrokers"
    assert found[("everywhere", 1)] == "RacksLost"
    assert assignments(cluster, "everywhere", "led") == before
    with pytest.raises(SandboxError, match="brokers is immutable"):
        drains.patch("both", brokers=[1])
    drains.apply(drain_of("younger", 4))
    first, second = sorted(("both", "younger"), key=lambda name: seniority(drains.get(name)))
    drains.wait_for_condition(second, "Stalled", "True", "ResourceConflict")
    assert condition(drains.get(first), "Stalled").get("reason") != "ResourceConflict"
    drains.delete("both", "younger")


def seniority(drain: dict[str, Any]) -> tuple[str, str]:
    """The smaller one counts. API servers note whole seconds: of two created in one, the uid
    decides."""
    metadata = drain["metadata"]
    return metadata["creationTimestamp"], metadata["uid"]
