"""A KafkaTopic gets another replication factor, on real brokers."""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster
from tests.support.figures import Figure
from tests.support.resources import Resources, topic

pytestmark = pytest.mark.integration

PARTITIONS = 45
"""More than are reassigned at a time."""


def test_replicas_are_added_once_though_regent_is_killed(
    cluster: Cluster, resources: Resources, process: RegentProcess, figure: Figure
) -> None:
    resources.apply(topic("wider", partitions=PARTITIONS, replicas=1))
    resources.wait_ready("wider")
    leaders = cluster.znodes.assignment("wider") or {}

    began = time.monotonic()
    resources.patch("wider", replicas=3)
    cluster.wait(
        lambda: any(len(replicas) > 1 for replicas in assigned(cluster, "wider").values()),
        "the first partitions to be on their way",
        interval_s=0.01,
    )
    cluster.kill_regent(process)
    process.start()
    process.wait_until_active()
    resources.wait_for_status("wider", "three replicas", replicas=3, replicaSummary="3/3")
    resources.wait_ready("wider")
    figure("1 to 3 replicas, with a kill", f"{time.monotonic() - began:.1f} s")

    wider = assigned(cluster, "wider")
    assert {p: replicas[:1] for p, replicas in wider.items()} == leaders, "what was there stays"
    assert all(sorted(replicas) == cluster.broker_ids for replicas in wider.values())
    assert set(copies(cluster, "wider").values()) == {1}, "no replica is copied twice"
    cluster.wait_in_sync("wider")

    resources.patch("wider", replicas=2)
    resources.wait_for_status("wider", "two replicas", replicas=2, replicaSummary="2/2")
    resources.wait_ready("wider")
    narrower = assigned(cluster, "wider")
    assert {p: replicas[:1] for p, replicas in narrower.items()} == leaders
    load = Counter(broker for replicas in narrower.values() for broker in replicas)
    assert set(load.values()) == {2 * PARTITIONS // 3}, "evenly removed"
    resources.wait_for_events("wider", "ReplicaChangeStarted", "ReplicasChanged")
    cluster.wait_for_consistency()


def test_not_below_what_somebody_else_has_set_as_min_insync_replicas(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    resources.apply(topic("safe", partitions=1, replicas=2))
    resources.wait_ready("safe")
    cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.tools.bootstrap_servers}",
        "--alter",
        "--entity-type=topics",
        "--entity-name=safe",
        "--add-config=min.insync.replicas=2",
    )
    resources.patch("safe", replicas=1)
    stalled = resources.wait_for_condition("safe", "Stalled", "True", "ReplicasMismatch")
    assert "the topic's min.insync.replicas is 2" in stalled["message"]
    assert len(assigned(cluster, "safe")[0]) == 2


def test_what_is_left_out_is_what_the_brokers_have_by_default(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    bare = topic("bare")
    bare["spec"] = {}
    resources.apply(bare)
    resources.wait_ready("bare")
    status = resources.get("bare")["status"]
    assert (status["partitionSummary"], status["replicaSummary"]) == ("1", "1")
    assert [len(replicas) for replicas in assigned(cluster, "bare").values()] == [1]


def assigned(cluster: Cluster, name: str) -> dict[int, list[int]]:
    return cluster.znodes.assignment(name) or {}


def copies(cluster: Cluster, name: str) -> Counter[tuple[int, str]]:
    """How often each broker has created the log of each partition."""
    pattern = re.compile(rf"Created log for partition ({name}-\d+) ")
    return Counter(
        (broker.broker_id, partition)
        for broker in cluster.kafka.brokers
        for partition in pattern.findall(broker.log_path.read_text())
    )
