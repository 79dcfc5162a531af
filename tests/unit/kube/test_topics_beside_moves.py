"""A KafkaTopic beside the resources that move its partitions: the real controller over a simulated
cluster, and an API server in memory."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from regent.admin.commands import AlterTopicConfig
from regent.kube.kind_wiring import (
    serve_broker_drains,
    serve_kafka_topics,
    serve_partition_reassignments,
)
from regent.zk_data.throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS
from tests.support import waiting
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.unit.kube.serving_moves import ServedResource
from tests.unit.reconcile.reassignments.reassigning import AUTOMATIC, assign

THROTTLE = {"bytesPerSecond": 4_000_000}


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with SimulatedCluster(brokers=3) as running:
        yield running


@pytest.fixture
def controller(cluster: SimulatedCluster) -> Iterator[LiveController]:
    with LiveController(cluster) as running:
        yield running


def create(cluster: SimulatedCluster, config: dict[str, str]) -> None:
    """A topic with one partition, which may be moved to all pairs of brokers."""
    cluster.create_topic("orders", [(1, 2)], config)
    for target in itertools.permutations((1, 2, 3), 2):
        cluster.expect_move("orders", 0, target)


def reassignment() -> ServedResource:
    return ServedResource(
        serve_partition_reassignments,
        "PartitionReassignment",
        approval=AUTOMATIC,
        assignments=assign((3, 2)),
        throttle=THROTTLE,
    )


def drain(**spec: Any) -> ServedResource:
    return ServedResource(serve_broker_drains, "BrokerDrain", brokers=[1], **spec)


def conditions(resource: ServedResource) -> dict[str, tuple[str, str, str]]:
    return {
        each["type"]: (each["status"], each["reason"], each["message"])
        for each in resource.status.get("conditions", ())
    }


async def until(
    resource: ServedResource,
    condition: str,
    expected: Callable[[tuple[str, str, str]], bool],
    *,
    describe: str,
) -> None:
    await waiting.until(
        lambda: conditions(resource).get(condition, ("", "", "")), describe, until=expected
    )


def reasons(topic: ServedResource) -> list[str]:
    """The reasons of the Events about a topic."""
    return [event["reason"] for event in topic.store.created]


@pytest.mark.parametrize(
    "declared",
    [
        {LEADER_REPLICAS: "", FOLLOWER_REPLICAS: ""},
        {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "7:8"},
        {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"},
    ],
    ids=["empty", "lists", "all"],
)
@pytest.mark.parametrize(
    ("mover", "phase"),
    [(reassignment, "Completed"), (lambda: drain(throttle=THROTTLE), "Drained")],
    ids=["reassignment", "drain"],
)
async def test_declared_throttled_replicas_do_not_undo_the_throttle_of_a_move(
    cluster: SimulatedCluster,
    controller: LiveController,
    mover: Callable[[], ServedResource],
    phase: str,
    declared: dict[str, str],
) -> None:
    create(cluster, declared)
    topic = ServedResource(serve_kafka_topics, "KafkaTopic", topicName="orders", config=declared)
    move = mover()
    async with topic.served(controller):
        await until(
            topic, "Synced", lambda c: c[0] == "True", describe="the topic to be as declared"
        )
        cluster.pause_broker(3)  # nothing is copied there
        async with move.served(controller):
            if declared[LEADER_REPLICAS] != "*":
                await until(
                    topic,
                    "Synced",
                    lambda c: c[0] == "Unknown",
                    describe="the throttle to be named",
                )
                _, reason, message = conditions(topic)["Synced"]
                assert reason == "ReassignmentInProgress"
                assert f"config[{LEADER_REPLICAS}]" in message
                assert conditions(topic)["Ready"][0] == "True"
                assert not [c for c in controller.commands if isinstance(c, AlterTopicConfig)]
                throttled = await asyncio.to_thread(cluster.config, "orders")
                assert "0:3" in throttled[FOLLOWER_REPLICAS].split(",")
            cluster.resume_broker(3)
            await move.wait_for(phase)
        await until(
            topic, "Synced", lambda c: c[0] == "True", describe="the topic to be as declared"
        )
    config = await asyncio.to_thread(cluster.config, "orders")
    assert {key: config.get(key, "") for key in declared} == declared
    assert not {"DriftDetected", "DriftReverted"}.intersection(reasons(topic))


async def test_topic_stays_ready_while_a_drain_changes_the_order_of_replicas(
    cluster: SimulatedCluster, controller: LiveController
) -> None:
    create(cluster, {"min.insync.replicas": "1"})
    topic = ServedResource(
        serve_kafka_topics, "KafkaTopic", topicName="orders", replicaAssignment=[[1, 2]]
    )
    move = drain(mode="Leadership")
    async with topic.served(controller):
        await until(topic, "Ready", lambda c: c[0] == "True", describe="the topic to be ready")
        async with move.served(controller) as serving:
            await move.wait_for("Drained")
            await until(
                topic, "Ready", lambda c: "[2, 1] instead of [1, 2]" in c[2], describe="the order"
            )
            assert conditions(topic)["Ready"][0] == "True"
            assert conditions(topic)["Stalled"][0] == "False"
            serving.change(desiredState="Undone")
            await move.wait_for("Undone")
        await until(
            topic, "Ready", lambda c: c[2] == "the topic is as declared", describe="the first order"
        )
    assert cluster.replicas("orders") == [(1, 2)]
