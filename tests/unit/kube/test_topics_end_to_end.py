"""KafkaTopics from the resource to the brokers: the real controller over a simulated cluster, whose
safety checker follows every step, and an API server in memory."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from regent.admin.commands import Accepted, AlterPartitionReassignments, DescribeTopicConfigs
from regent.kube.kind_wiring import serve_kafka_topics
from regent.model.partition import TopicPartition
from regent.reconcile.topics.replica_planning import MOVING_IN_CLUSTER
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import until
from tests.unit.kube.serving_moves import ServedResource


async def message_of(resource: ServedResource) -> str:
    conditions = resource.status.get("conditions", [])
    return "".join(each["message"] for each in conditions if each["type"] == "Ready")


async def until_it_says(
    resource: ServedResource, text: str, *, describe: str = "the topic"
) -> None:
    await until(partial(message_of, resource), describe, until=lambda message: text in message)


async def test_more_replicas_wait_while_much_of_the_cluster_moves_and_come_when_it_has() -> None:
    with SimulatedCluster(brokers=3) as cluster, LiveController(cluster) as controller:
        cluster.create_topic("large", [(1,)] * MOVING_IN_CLUSTER, {})
        for i in range(MOVING_IN_CLUSTER):
            cluster.expect_move("large", i, (3,))
        for target in ((1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)):
            cluster.expect_move("move", 0, target)

        async def replicas() -> int:
            if "move" not in controller.view.topics:
                return 0
            return len((await asyncio.to_thread(cluster.replicas, "move"))[0])

        topic = ServedResource(
            serve_kafka_topics, "KafkaTopic", partitions=1, replicas=1, deletionPolicy="Retain"
        )
        async with topic.served(controller) as serving:
            await until(replicas, "the topic", until=lambda n: n == 1)
            cluster.pause_broker(3)
            large = {TopicPartition("large", i): (3,) for i in range(MOVING_IN_CLUSTER)}
            (outcome,) = await controller.submit([AlterPartitionReassignments(large)])
            assert isinstance(outcome, Accepted), outcome
            await until(
                partial(serving.around.moving.elsewhere, "move", at=0.0),
                "the other topic to move",
                until=lambda n: n == MOVING_IN_CLUSTER,
            )
            serving.change(replicas=2)
            await until(
                lambda: message_of(topic),
                "the topic to wait",
                until=lambda message: f"{MOVING_IN_CLUSTER} partitions of other topics" in message,
            )
            assert await replicas() == 1
            cluster.resume_broker(3)
            await until(replicas, "the second replica", until=lambda n: n == 2)


def readings(controller: LiveController) -> int:
    """How often configurations were read."""
    return sum(isinstance(command, DescribeTopicConfigs) for command in controller.commands)


async def test_a_configuration_is_read_when_it_has_changed_and_for_nothing_else() -> None:
    with SimulatedCluster(brokers=2) as cluster, LiveController(cluster) as controller:
        config = {"retention.ms": "1000"}
        topic = ServedResource(
            serve_kafka_topics, "KafkaTopic", partitions=1, replicas=2, config=config
        )
        async with topic.served(controller):
            await until_it_says(topic, "the topic is as declared")
            cluster.crash_broker(2)
            await until(
                lambda: asyncio.to_thread(topic.status.get, "underReplicated"),
                "the replica to be missing",
                until=lambda count: count == 1,
            )
            assert readings(controller) == 0

            cluster.alter_config("move", {"retention.ms": "2000"})
            await until(
                lambda: asyncio.to_thread(readings, controller),
                "the configuration to be read",
                until=lambda count: count > 0,
            )
            await until(
                lambda: asyncio.to_thread(cluster.config, "move"),
                "what somebody else has changed to be corrected",
                until=lambda now: now == config,
            )


async def test_a_name_that_is_taken_is_used_as_soon_as_it_is_free() -> None:
    with SimulatedCluster(brokers=2) as cluster, LiveController(cluster) as controller:
        cluster.create_topic("mo_ve", [(1, 2)], {})
        topic = ServedResource(
            serve_kafka_topics, "KafkaTopic", topicName="mo.ve", partitions=1, replicas=2
        )
        async with topic.served(controller):
            await until_it_says(
                topic, "'mo_ve' differ only in '.' and '_'", describe="the topic to be refused"
            )
            cluster.delete_topic("mo_ve")
            await until_it_says(topic, "the topic is as declared")


async def test_a_topic_that_is_created_in_another_cluster_is_no_adopted_one() -> None:
    """The status still speaks of the topic in the former cluster."""
    with SimulatedCluster(brokers=2) as cluster, LiveController(cluster) as controller:
        await until(
            lambda: asyncio.to_thread(lambda: controller.view.cluster_id),
            until=lambda cluster_id: cluster_id is not None,
            describe="the id of the cluster",
        )
        topic = ServedResource(
            serve_kafka_topics,
            "KafkaTopic",
            partitions=1,
            replicas=2,
            clusterId=controller.view.cluster_id,
        )
        former = {"clusterId": "former", "ownership": "Created", "topicId": 22 * "A"}
        topic.status.update(former, observedGeneration=1)
        async with topic.served(controller):
            await until_it_says(topic, "the topic is as declared")
        assert topic.status["clusterId"] == controller.view.cluster_id
        assert topic.status["ownership"] == "Created"
        assert topic.status["deletionPolicy"] == "Delete"


NOTED_AT_CREATION = {
    "manager": "helm",
    "operation": "Update",
    "fieldsV1": {
        "f:spec": {
            ".": {},
            "f:adoptionPolicy": {},
            "f:deletionPolicy": {},
            "f:managementPolicy": {},
            "f:onForeignDeletion": {},
            "f:partitions": {},
        }
    },
}


@pytest.mark.parametrize("policy", ["Alert", "Recreate"])
async def test_declared_deletion_policy_is_in_effect_when_topic_is_adopted(policy: str) -> None:
    with SimulatedCluster(brokers=2) as cluster, LiveController(cluster) as controller:
        cluster.create_topic("move", [(1, 2)], {})
        topic = ServedResource(
            serve_kafka_topics,
            "KafkaTopic",
            partitions=1,
            deletionPolicy="Delete",
            onForeignDeletion=policy,
        )
        topic.body["metadata"]["managedFields"] = [NOTED_AT_CREATION]
        async with topic.served(controller):
            await until_it_says(topic, "the topic is as declared")
        assert topic.status["ownership"] == "Adopted"
        assert topic.status["deletionPolicy"] == "Delete"
        assert await message_of(topic) == "the topic is as declared"
