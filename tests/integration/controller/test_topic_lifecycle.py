"""A KafkaTopic from creation to deletion, as its user, the brokers and Kafka's tools see it."""

from __future__ import annotations

import time

import pytest

from tests.support.cluster import Cluster
from tests.support.figures import Figure
from tests.support.resources import Resources, topic

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("process")]


def test_a_topic_lives_from_creation_through_growth_and_configuration_to_deletion(
    cluster: Cluster, resources: Resources, figure: Figure
) -> None:
    znodes = cluster.znodes
    began = time.monotonic()
    resources.apply(
        topic("payments", config={"retention.ms": 3_600_000, "cleanup.policy": "compact"})
    )
    resources.wait_ready("payments")
    figure("created and Ready, as kubectl sees it, after", f"{time.monotonic() - began:.1f} s")
    status = resources.get("payments")["status"]
    assert (status["partitions"], status["replicas"]) == (3, 3)
    assert (status["partitionSummary"], status["replicaSummary"]) == ("3/3", "3/3")
    assert (status["leaderless"], status["underReplicated"]) == (0, 0)
    assert znodes.config("payments") == {"retention.ms": "3600000", "cleanup.policy": "compact"}
    for replicas in (znodes.assignment("payments") or {}).values():
        assert sorted(replicas) == cluster.broker_ids
    cluster.wait(
        lambda: replica_directories(cluster, "payments"),
        "every replica to have its directory",
        until=lambda found: len(found) == 9,
    )

    resources.apply(topic("payments", partitions=6, config={"retention.ms": 7_200_000}))
    resources.wait_for_status("payments", "growth to 6", partitions=6, partitionSummary="6/6")
    resources.wait_ready("payments")
    leaderships = cluster.wait_for_consistency()
    assert sorted(p for t, p in leaderships if t == "payments") == list(range(6))
    described = describe_configs(cluster, "payments")
    assert "retention.ms=7200000 " in described
    assert "cleanup.policy" not in described  # removed from the resource

    resources.delete("payments")  # returns when the finalizer is removed
    assert znodes.assignment("payments") is None
    assert znodes.config("payments") is None
    assert znodes.get("/admin/delete_topics/payments") is None
    assert replica_directories(cluster, "payments") == []
    assert not [tp for tp in cluster.wait_for_consistency() if tp[0] == "payments"]


def test_drift_made_with_kafkas_tools_is_reverted(
    cluster: Cluster, resources: Resources, figure: Figure
) -> None:
    resources.apply(topic("steady", partitions=1, config={"retention.ms": 3_600_000}))
    resources.wait_ready("steady")
    changed = cluster.znodes.watch("/config/topics/steady")
    cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.tools.bootstrap_servers}",
        "--alter",
        "--entity-type=topics",
        "--entity-name=steady",
        "--add-config=retention.ms=1000,max.message.bytes=2000000",
    )
    drifted_at = changed.wait("the change to arrive in ZooKeeper")
    # what the resource does not mention is left alone
    cluster.wait(
        lambda: cluster.znodes.config("steady"),
        "the declared value to be back",
        until=lambda config: config == {"retention.ms": "3600000", "max.message.bytes": "2000000"},
        interval_s=0.01,
    )
    figure("drift reverted within", f"{(time.monotonic() - drifted_at) * 1000:.0f} ms")
    resources.wait_ready("steady")
    assert "retention.ms=3600000 " in describe_configs(cluster, "steady")


def describe_configs(cluster: Cluster, name: str) -> str:
    """A topic's own configuration as the brokers tell an AdminClient."""
    return cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.tools.bootstrap_servers}",
        "--describe",
        "--entity-type=topics",
        f"--entity-name={name}",
    ).stdout


def replica_directories(cluster: Cluster, name: str) -> list[str]:
    """Directories of a topic's replicas on all brokers; those being removed have another name."""
    return [
        str(path)
        for broker in cluster.kafka.brokers
        for path in broker.state_path.glob(f"data-*/{name}-*")
        if path.name.removeprefix(f"{name}-").isdigit()
    ]
