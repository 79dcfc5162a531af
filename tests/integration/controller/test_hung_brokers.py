"""Brokers that hang on idle connections: alive for ZooKeeper, and reached as far as is known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.kafka_jars import DEFAULT_VERSION
from tests.integration.controller.test_broker_drains import drain_of
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.resources import Resources, topic

pytestmark = [pytest.mark.integration]

HUNG_FOR_S = 5.0
"""An answer is overdue after 30 seconds only."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two brokers, of which one may hang for a while: its session and its place in ISRs stay."""
    with cluster_of(
        DEFAULT_VERSION, brokers=2, session_timeout_ms=60_000, replica_lag_time_max_ms=120_000
    ) as started:
        yield started


def test_nothing_is_done_before_a_leader_that_hangs_has_answered(
    cluster: Cluster, resources: Resources
) -> None:
    cluster.tools.topics("--create", "--topic=led", "--replica-assignment=1:2")
    cluster.wait_in_sync("led")
    drains = resources.of("drain")
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as process:
        process.wait_until_active()
        cluster.wait(lambda: is_idle(process.status() or {}), "the brokers to be informed")
        cluster.broker(2).pause()
        try:
            resources.apply(
                topic("new", partitions=1, replicaAssignment=[[2]], deletionPolicy="Retain")
            )
            drains.apply(drain_of("one", 1, mode="Leadership"))
            cluster.wait(
                lambda: cluster.znodes.state("led", 0).get("leader") == 2,
                "the broker that hangs to be made the leader",
            )
            waiting = ["False/Verifying", "False/BrokersUnreached"]
            said = cluster.wait(
                lambda: [truth(drains, "one")["Drained"], truth(resources, "new")["Ready"]],
                "what is waited for to be said",
                until=lambda said: said == waiting or any(each[0] == "T" for each in said),
            )
            assert said == waiting
            deadline = time.monotonic() + HUNG_FOR_S
            while time.monotonic() < deadline:
                assert truth(drains, "one")["Drained"].startswith("False/")
                assert truth(resources, "new")["Ready"].startswith("False/")
                time.sleep(0.2)
        finally:
            cluster.broker(2).resume()
        drains.wait_until_true("one", "Drained")
        resources.wait_ready("new")
        drains.delete("one")


def is_idle(status: dict[str, Any]) -> bool:
    """Whether nothing waits for brokers."""
    sizes: dict[str, int] = status.get("channelQueueSizes") or {}
    return bool(sizes) and not any(sizes.values())


def truth(resources: Resources, name: str) -> dict[str, str]:
    """Status and reason of each condition."""
    conditions = resources.get(name).get("status", {}).get("conditions", ())
    return {each["type"]: f"{each['status']}/{each['reason']}" for each in conditions}
