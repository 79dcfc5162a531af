"""Regent serves custom resources as a client of the controller: of a broker, or of a Regent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from sandbox import KubernetesApi
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.clusters import Clusters
from tests.support.reassigning import (
    create_topic,
    under_way,
    wait_for_hosts,
    wait_until_moved,
)
from tests.support.resources import Resources, condition, topic
from tests.support.soak import soak, versions
from tests.support.throttling import held_back

pytestmark = [pytest.mark.integration, pytest.mark.slow]

API = "kafka.regent.dev/v1alpha1"
AUTOMATIC = {"policy": "Automatic"}


@pytest.fixture(scope="module", params=versions("3.9.1", others=("2.4.1",)))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["broker", pytest.param("regent", marks=soak("controller"))])
def cluster(request: pytest.FixtureRequest, version: str, clusters: Clusters) -> Iterator[Cluster]:
    """Three brokers, and a controller that stays the controller: one of them, or a Regent."""
    brokers = clusters.healthy(version)
    with regent(brokers, name="leader") if request.param == "regent" else nullcontext():
        yield brokers.in_client_mode()


@pytest.fixture(scope="module")
def resources(cluster: Cluster, kubernetes: KubernetesApi) -> Resources:
    leader = "broker" if cluster.znodes.controller() in cluster.broker_ids else "regent"
    namespace = f"client-of-{leader}-{cluster.kafka.version.replace('.', '-')}"
    return Resources(kubernetes, namespace)


@pytest.fixture(scope="module")
def process(cluster: Cluster, resources: Resources) -> Iterator[RegentProcess]:
    """A Regent in client mode. Whatever it does, no controller is elected meanwhile."""
    before = (cluster.znodes.controller(), cluster.znodes.controller_epoch())
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as started:
        yield started
    assert (cluster.znodes.controller(), cluster.znodes.controller_epoch()) == before


def reassignment(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "PartitionReassignment",
        "metadata": {"name": name},
        "spec": {"approval": AUTOMATIC, **spec},
    }


def assign(topic: str, targets: dict[int, list[int]]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partition": partition, "replicas": replicas}
        for partition, replicas in targets.items()
    ]


def drain_of(name: str, broker_id: int, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "BrokerDrain",
        "metadata": {"name": name},
        "spec": {"brokers": [broker_id], **spec},
    }


def throttled(cluster: Cluster, topic: str) -> dict[str, Any]:
    """What throttles replicas of a topic or at brokers, and the notes about it."""
    found: dict[str, Any] = {topic: cluster.znodes.config(topic) or {}}
    for broker_id in cluster.broker_ids:
        content = cluster.znodes.json(f"/config/brokers/{broker_id}") or {"config": {}}
        found[f"broker {broker_id}"] = content["config"]
    for kind in ("topics", "brokers"):
        found[kind] = cluster.znodes.children(f"/regent/throttles/{kind}")
    return {what: value for what, value in found.items() if value}


def test_the_status_is_that_of_the_controller(cluster: Cluster, process: RegentProcess) -> None:
    status = process.status()
    assert status is not None
    assert status["mode"] == "client"
    assert status["activeControllerId"] == cluster.znodes.controller()
    assert status["controllerEpoch"] == cluster.znodes.controller_epoch()
    assert status["unreachedBrokers"] == {}


def test_topics_are_created_grown_configured_and_deleted(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    def loaded() -> list[int]:
        return [b.log_path.read_text().count("retention.ms -> 70000") for b in cluster.running]

    loaded_before = loaded()
    retention = {"retention.ms": 60_000}
    resources.apply(topic("orders", partitions=3, replicas=2, config=retention))
    resources.wait_ready("orders")
    cluster.wait_for_consistency()
    assert cluster.znodes.config("orders") == {"retention.ms": "60000"}

    resources.patch("orders", partitions=5, config={"retention.ms": 70_000})
    resources.wait_for_status("orders", "five partitions", partitions=5)
    resources.wait_ready("orders")
    cluster.wait_for_consistency()
    assert cluster.znodes.config("orders") == {"retention.ms": "70000"}
    cluster.wait(
        loaded,
        "every broker to have loaded the configuration",
        until=lambda counts: all(
            now > before for now, before in zip(counts, loaded_before, strict=True)
        ),
    )

    resources.delete("orders")
    cluster.wait(lambda: "orders" not in cluster.znodes.topics(), "the topic to be gone")


def test_a_topic_that_was_created_again_while_the_process_was_paused_is_not_deleted(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    """When it goes on, what it knows of the cluster is older than what it reads of resources."""
    names = [f"again-{i}" for i in range(8)]
    resources.apply(*(topic(name, partitions=1, replicas=2) for name in names))
    resources.wait_ready(*names)
    process.process.pause()
    try:
        for name in names:
            cluster.znodes.client.create(f"/admin/delete_topics/{name}")
        cluster.wait(
            lambda: cluster.znodes.children("/admin/delete_topics"),
            "somebody else's deletions to be done",
            until=lambda left: not left,
        )
        for name in names:
            create_topic(cluster, name, {0: [1, 2]})
        resources.delete(*names, wait=False)
    finally:
        process.process.resume()
    resources.wait_gone(*names)
    cluster.wait(
        lambda: cluster.znodes.children("/admin/delete_topics"),
        "no topic to be on its way out",
        until=lambda left: not left,
    )
    assert set(names) <= set(cluster.znodes.topics())
    cluster.delete_topics()


def test_a_topic_that_is_there_is_adopted_or_only_observed(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "adopted", {0: [1, 2]})
    create_topic(cluster, "observed", {0: [1, 2]})
    resources.apply(
        topic("adopted", partitions=2, replicas=2),
        topic("observed", partitions=2, replicas=2, managementPolicy="Observe"),
    )
    resources.wait_ready("adopted")
    resources.wait_for_condition("observed", "Synced", "False")
    assert len(cluster.znodes.assignment("adopted") or {}) == 2
    assert len(cluster.znodes.assignment("observed") or {}) == 1
    resources.delete("observed")
    assert "observed" in cluster.znodes.topics()


def test_more_replicas_come_through_the_controller(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    resources.apply(topic("factor", partitions=2, replicas=1))
    resources.wait_ready("factor")
    resources.patch("factor", replicas=3)
    cluster.wait(
        lambda: cluster.znodes.assignment("factor") or {},
        "three replicas",
        until=lambda found: {len(replicas) for replicas in found.values()} == {3},
    )
    cluster.wait_in_sync("factor")
    resources.wait_for_condition("factor", "Ready", "True")


def test_a_move_is_throttled_cancelled_and_resumed(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    create_topic(cluster, "moved", {0: [1], 1: [1]})
    cluster.tools.run(
        "kafka-producer-perf-test",
        *("--topic=moved", "--num-records=4000", "--record-size=10000", "--throughput=-1"),
        *("--producer-props", f"bootstrap.servers={cluster.tools.bootstrap_servers}", "acks=all"),
    )
    moves = resources.of("reassignment")
    targets = {0: [2], 1: [2]}
    throttle = {"bytesPerSecond": 1024}
    moves.apply(reassignment("moved", assignments=assign("moved", targets), throttle=throttle))
    cluster.wait(lambda: under_way(cluster, "moved"), "the moves to begin", interval_s=0.02)
    found = throttled(cluster, "moved")
    assert found["moved"]["follower.replication.throttled.replicas"] == "0:2,1:2"
    assert found["broker 2"] == {"follower.replication.throttled.rate": "1024"}
    moves.patch("moved", desiredState="Cancelled")
    moves.wait_for_condition("moved", "Ready", "True", "ReassignmentCancelled")
    assert cluster.znodes.assignment("moved") == {0: [1], 1: [1]}
    assert throttled(cluster, "moved") == {}

    moves.patch("moved", desiredState="Running")
    cluster.wait(lambda: under_way(cluster, "moved"), "the moves to begin again", interval_s=0.02)
    process.kill()
    process.start()
    assert throttled(cluster, "moved")["topics"] == ["moved"]

    epochs = [cluster.znodes.state("moved", p)["leader_epoch"] for p in targets]
    moves.patch("moved", throttle={"bytesPerSecond": 2048})
    cluster.wait(
        lambda: throttled(cluster, "moved")["broker 2"],
        "another rate",
        until=lambda found: found == {"follower.replication.throttled.rate": "2048"},
    )
    unchanged = [cluster.znodes.state("moved", p)["leader_epoch"] for p in targets] == epochs
    assert unchanged, "the controller was asked to move what moves"
    moves.patch("moved", throttle={"bytesPerSecond": 10**9})
    moves.wait_until_true("moved", "Completed")
    assert throttled(cluster, "moved") == {}
    wait_for_hosts(cluster, {("moved", p): replicas for p, replicas in targets.items()})


def test_another_replica_goes_on_to_the_same_target_and_copies_nothing_twice(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    partitions = 40
    create_topic(cluster, "client-killed", {p: [1 + p % 2] for p in range(partitions)})
    targets = {p: [3] for p in range(partitions)}
    create_topic(cluster, "client-slow", {0: [1]})
    moves = resources.of("reassignment")
    log_before = cluster.broker(3).log_path.read_text()

    def arrived() -> int:
        return list((cluster.znodes.assignment("client-killed") or {}).values()).count([3])

    with regent(
        cluster, name="other", kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as other:
        with held_back(cluster, "client-slow", 3):
            moves.apply(
                reassignment(
                    "client-killed",
                    assignments=[
                        *assign("client-killed", targets),
                        *assign("client-slow", {0: [3]}),
                    ],
                    concurrency={"total": 2},
                )
            )
            cluster.wait(arrived, "some to arrive", until=lambda n: n >= 5, interval_s=0.02)
            plan = moves.get("client-killed")["status"]["plan"]["hash"]
            process.kill()
        moves.wait_until_true("client-killed", "Completed")
        assert "regent_serving 1.0" in other.metrics()
    process.start()
    assert moves.get("client-killed")["status"]["plan"]["hash"] == plan
    moved = {
        ("client-slow", 0): [3],
        **{("client-killed", p): replicas for p, replicas in targets.items()},
    }
    wait_until_moved(cluster, moved)
    log = cluster.broker(3).log_path.read_text().removeprefix(log_before)
    created = Counter(
        re.findall(r"Created log for partition ((?:client-killed|client-slow)-\d+) ", log)
    )
    assert created == {f"{topic}-{p}": 1 for topic, p in moved}


def test_a_broker_is_drained_and_the_drain_undone(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    before = {p: [2, 1] if p % 2 else [1, 2] for p in range(4)}
    create_topic(cluster, "drained", before)
    resources.delete("factor")  # three replicas on three brokers cannot leave any
    cluster.wait(lambda: "factor" not in cluster.znodes.topics(), "the topic to be gone")
    drains = resources.of("drain")
    drains.apply(drain_of("leaders", 2, mode="Leadership"))
    cluster.wait(
        lambda: {cluster.znodes.state("drained", p)["leader"] for p in before},
        "another leader",
        until=lambda leaders: leaders == {1},
    )
    drains.patch("leaders", desiredState="Undone")
    drains.wait_for_condition("leaders", "Ready", "True", "DrainUndone")
    for p, replicas in before.items():
        cluster.wait_for_leader("drained", replicas[0], p)
    drains.delete("leaders")

    drains.apply(drain_of("replicas", 2))
    drains.wait_until_true("replicas", "Drained")
    held = [t for t in cluster.znodes.topics() if _holds(cluster, t, 2)]
    assert held == []
    assert condition(drains.get("replicas"), "Cordoned")["status"] == "True"
    resources.apply(topic("placed", partitions=6, replicas=2))
    resources.wait_ready("placed")
    assert not _holds(cluster, "placed", 2)
    drains.patch("replicas", desiredState="Undone")
    drains.wait_for_condition("replicas", "Ready", "True", "DrainUndone")
    assert cluster.znodes.assignment("drained") == before


def _holds(cluster: Cluster, topic: str, broker_id: int) -> bool:
    assigned = cluster.znodes.assignment(topic) or {}
    return any(broker_id in replicas for replicas in assigned.values())


def test_with_brokers_before_2_2_topics_are_served_and_the_rest_is_refused_with_its_reason(
    kubernetes: KubernetesApi,
) -> None:
    """Their ZooKeeper is 3.4, which has no recursive watches."""
    resources = Resources(kubernetes, "client-old")
    drains = resources.of("drain")
    with cluster_of("1.1.1", inter_broker_protocol=None, zookeeper_version="1.1.1") as cluster:
        cluster.wait_for_a_broker_as_controller()
        with regent(
            cluster.in_client_mode(),
            kubeconfig=kubernetes.kubeconfig,
            namespace="client-old",
            lease_name="old",  # another Regent of this module may hold the usual one
        ):
            resources.apply(topic("old", partitions=2, replicas=1))
            resources.wait_ready("old")
            resources.patch("old", partitions=4, config={"retention.ms": 60_000})
            resources.wait_for_status("old", "four partitions", partitions=4)
            resources.wait_ready("old")
            cluster.wait_for_consistency()
            resources.patch("old", replicas=2)
            found = resources.wait_for_condition("old", "Ready", "False", "ControllerTooOld")
            assert "Kafka 2.4" in found["message"]
            create_topic(cluster, "led", {0: [2, 1]})
            drains.apply(drain_of("two", 2, mode="Leadership"))
            cluster.wait(
                lambda: json.dumps(drains.get("two").get("status", {})),
                "the refusal to be named",
                until=lambda status: "is older than Kafka 2.4" in status,
            )
            assert cluster.znodes.assignment("led") == {0: [2, 1]}
            resources.delete("old")
            cluster.wait(lambda: "old" not in cluster.znodes.topics(), "the topic to be gone")


@soak("controller")
def test_a_topic_that_grows_while_nobody_controls_the_cluster_can_be_deleted(
    kubernetes: KubernetesApi,
) -> None:
    """The controller of Kafka 1.1 that finds a topic to be deleted, with a partition that it has
    not seen before, never ends the deletion."""
    resources = Resources(kubernetes, "client-grown")
    with cluster_of("1.1.1", inter_broker_protocol=None, zookeeper_version="1.1.1") as cluster:
        controller = cluster.wait_for_a_broker_as_controller()
        with regent(
            cluster.in_client_mode(),
            kubeconfig=kubernetes.kubeconfig,
            namespace="client-grown",
            lease_name="grown",
        ):
            resources.apply(topic("grown", partitions=2, replicas=2))
            resources.wait_ready("grown")
            cluster.broker(controller).pause()
            resources.patch("grown", partitions=3)
            cluster.wait(
                lambda: cluster.znodes.assignment("grown") or {},
                "another partition",
                until=lambda found: len(found) == 3,
                interval_s=0.02,
            )
            resources.delete("grown", wait=False)
            cluster.broker(controller).end_session()
            cluster.wait(
                lambda: cluster.znodes.controller() or controller,
                "another controller",
                until=lambda found: found != controller,
            )
            cluster.broker(controller).resume()
            cluster.wait(lambda: "grown" not in cluster.znodes.topics(), "the topic to be gone")
