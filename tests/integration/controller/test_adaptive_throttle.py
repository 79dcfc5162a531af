"""A throttle that adapts, on real brokers: it follows replicas of partitions that do not move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import KafkaCluster, ZooKeeper
from sandbox.errors import CommandError
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, regent
from tests.support.figures import Figure
from tests.support.reassigning import create_topic, wait_for_hosts
from tests.support.resources import Resources
from tests.support.soak import soak
from tests.support.throttling import produce, throttles
from tests.support.workload import workload
from tests.support.znodes import Znodes

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RATE = 200_000


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeper) -> Iterator[Cluster]:
    """Brokers whose replicas are out of sync long before their session is over, which is as long as
    ZooKeeper allows."""
    connect_string = f"{zookeeper.connect_string}/adaptive"
    with (
        KafkaCluster(
            zookeeper=connect_string,
            brokers=3,
            inter_broker_protocol_version="2.6",
            session_timeout_ms=60_000,
            config={"auto.leader.rebalance.enable": False, "replica.lag.time.max.ms": 4_000},
        ) as kafka,
        Znodes(connect_string) as znodes,
    ):
        cluster = Cluster(kafka, znodes)
        yield cluster
        cluster.close()


@pytest.fixture(scope="module")
def process(cluster: Cluster, resources: Resources) -> Iterator[RegentProcess]:
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as started:
        started.wait_until_active(timeout_s=300)
        yield started


@pytest.fixture(scope="module")
def moves(resources: Resources) -> Resources:
    return resources.of("reassignment")


def progress(moves: Resources) -> dict[str, Any]:
    found: dict[str, Any] = moves.get("slow").get("status", {}).get("progress", {})
    return found


def wait_for_progress(
    cluster: Cluster, moves: Resources, what: str, *, until: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Wait until the status has a rate that is so, and return what it says."""
    found: dict[str, Any] = cluster.wait(
        lambda: progress(moves),
        f"the throttle to be {what}",
        until=lambda found: "throttle" in found and until(found),
    )
    return found


def rates(cluster: Cluster) -> set[str]:
    """What brokers have in ZooKeeper for what they send, and what they receive."""
    found = throttles(cluster, "slow")
    return {rate for broker in ("broker 1", "broker 2") for rate in found.get(broker, {}).values()}


@pytest.mark.parametrize(
    ("throttle", "message"),
    [
        ({}, "set either bytesPerSecond or adaptive"),
        (
            {"bytesPerSecond": 5000, "adaptive": {"minimum": 5000, "maximum": 5000}},
            "set either bytesPerSecond or adaptive",
        ),
        ({"adaptive": {"minimum": 5001, "maximum": 5000}}, "minimum must not be more than maximum"),
        ({"adaptive": {"minimum": 5, "maximum": 5000}}, "greater than or equal to 1024"),
    ],
)
def test_a_throttle_that_contradicts_itself_is_refused(
    moves: Resources, throttle: dict[str, Any], message: str
) -> None:
    specs: dict[str, dict[str, Any]] = {
        "PartitionReassignment": {"replicationFactor": {"slow": 2}},
        "BrokerDrain": {"brokers": [3]},
    }
    for kind, spec in specs.items():
        manifest = {
            "apiVersion": "kafka.regent.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": "wrong"},
            "spec": {**spec, "throttle": throttle},
        }
        with pytest.raises(CommandError, match=message):
            moves.apply(manifest)


@soak("controller")
def test_it_follows_another_replica_and_is_gone_at_the_end(
    cluster: Cluster, moves: Resources, process: RegentProcess, tmp_path: Path, figure: Figure
) -> None:
    """Slower while it lags, faster again, at the same rate under another process."""
    create_topic(cluster, "slow", {0: [1]})
    create_topic(cluster, "outside", {0: [1, 3]})
    produce(cluster, "slow", 120_000_000)
    assignments = [{"topic": "slow", "partition": 0, "replicas": [2]}]
    moves.apply(
        {
            "apiVersion": "kafka.regent.dev/v1alpha1",
            "kind": "PartitionReassignment",
            "metadata": {"name": "slow"},
            "spec": {
                "assignments": assignments,
                "approval": {"policy": "Automatic"},
                "throttle": {"bytesPerSecond": RATE},
            },
        }
    )
    cluster.wait(lambda: rates(cluster) == {str(RATE)}, "copies to be throttled")
    adaptive = {"minimum": 50_000, "maximum": RATE}
    moves.patch("slow", throttle={"bytesPerSecond": None, "adaptive": adaptive})
    cluster.wait(lambda: progress(moves).get("throttle") == RATE, "it goes on as it was")

    # A follower of which nothing is written does not lag. The producer knows its leader before a
    # broker is paused: what asks brokers for metadata now may ask that one, and wait.
    with workload(cluster.tools, "outside", tmp_path) as writer:
        writer.wait_for_progress()
        cluster.broker(3).process.pause()
        try:
            lowered = wait_for_progress(
                cluster, moves, "lowered", until=lambda found: found["throttle"] < RATE
            )
            cluster.wait(lambda: str(RATE) not in rates(cluster), "brokers to be told")
        finally:
            cluster.broker(3).process.resume()
        cluster.wait_in_sync("outside")
    assert "outside-0, which does not move, lacks a replica in sync" in lowered["throttleReason"]
    wait_for_progress(
        cluster, moves, "raised", until=lambda found: "raised" in found["throttleReason"]
    )
    cluster.wait(lambda: rates(cluster) == {str(progress(moves)["throttle"])}, "brokers to know it")
    announced = cluster.wait(
        lambda: [e["message"] for e in moves.events("slow") if e["reason"] == "ThrottleChanged"],
        "Events about both changes",
        until=lambda found: all(
            any(f"{change} from" in message for message in found)
            for change in ("lowered", "raised")
        ),
    )
    figure("changes of the throttle", "; ".join(announced))
    counted = process.metrics()
    for change in ("lowered", "raised"):
        name = f'regent_adaptive_throttle_changes_total{{change="{change}"}}'
        assert name in counted
        assert f"{name} 0.0" not in counted

    cluster.kill_regent(process)
    (left,) = rates(cluster)
    process.start()
    found = wait_for_progress(
        cluster, moves, "found", until=lambda found: found["throttleReason"] == "as it was found"
    )
    assert str(found["throttle"]) == left

    moves.patch("slow", throttle={"adaptive": {"minimum": 10**9, "maximum": 10**9}})
    moves.wait_until_true("slow", "Completed")
    assert throttles(cluster, "slow") == {}
    assert "throttle" not in progress(moves)
    wait_for_hosts(cluster, {("slow", 0): [2]})
