"""KafkaTopics from creation to deletion, against a real API server."""

from __future__ import annotations

import asyncio

import pytest

from regent.controller.commands import AlterTopicConfig, CreatePartitions, CreateTopic, DeleteTopic
from regent.kube.operator import KubeOperator
from regent.model.topic import topic_id_from_text
from regent.resources.kafka_topic import FINALIZER
from tests.integration.kube.conftest import Namespace, condition, topic
from tests.support.live_controller import LiveController

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


async def test_a_topic_is_created_and_becomes_ready(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", config={"min.insync.replicas": 2, "preallocate": True}))
    await asyncio.to_thread(
        namespace.kubectl, "wait", "--for=condition=Ready", "ktopic/orders", "--timeout=120s"
    )

    body = namespace.get("orders")
    assert controller.changes == [
        CreateTopic(
            topic="orders",
            partitions=3,
            replication_factor=3,
            config={"min.insync.replicas": "2", "preallocate": "true"},
            topic_id=topic_id_from_text(body["status"]["topicId"]),
        )
    ]
    assert body["metadata"]["finalizers"] == [FINALIZER]
    assert "kopf" not in str(body["metadata"])
    status = body["status"]
    assert status["observedGeneration"] == body["metadata"]["generation"]
    assert (status["partitionSummary"], status["replicaSummary"]) == ("3/3", "3/3")
    assert (status["leaderless"], status["underReplicated"]) == (0, 0)
    assert status["ownership"] == "Created"
    assert status["managedConfig"] == ["min.insync.replicas", "preallocate"]
    assert len(status["topicId"]) == 22
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Ready": "True",
        "Reconciling": "False",
        "Stalled": "False",
        "Synced": "True",
        "Healthy": "True",
    }


async def test_a_topic_grows_and_its_configuration_follows(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", config={"retention.ms": 1000, "segment.ms": 500}))
    await namespace.wait_condition("orders", "Ready", "True")

    namespace.patch("orders", partitions=5, config={"retention.ms": "2000", "segment.ms": None})
    body = await namespace.wait_condition("orders", "Ready", "True")

    assert controller.changes[1:] == [
        CreatePartitions(topic="orders", total=5),
        AlterTopicConfig(topic="orders", set={"retention.ms": "2000"}, remove=("segment.ms",)),
    ]
    assert body["status"]["partitionSummary"] == "5/5"
    assert body["status"]["managedConfig"] == ["retention.ms"]
    events = await namespace.wait_event("orders", "Normal", "ConfigChanged")
    assert [reason for _, reason in events] == [
        "TopicCreated",
        "PartitionsAdded",
        "ConfigChanged",
    ]


async def test_an_explicit_assignment_is_used_for_new_partitions(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", partitions=1, replicaAssignment=[[1, 2]]))
    await namespace.wait_condition("orders", "Ready", "True")
    namespace.apply(topic("orders", partitions=2, replicaAssignment=[[1, 2], [3, 1]]))
    await namespace.wait_condition("orders", "Ready", "True")

    created, grown = controller.changes
    assert isinstance(created, CreateTopic)
    assert created.assignment == {0: (1, 2)}
    assert grown == CreatePartitions(topic="orders", total=2, assignment={1: (3, 1)})


async def test_changes_from_outside_are_shown_and_reverted(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", config={"retention.ms": 1000}))
    await namespace.wait_condition("orders", "Ready", "True")

    controller.cluster.alter_config("orders", {"retention.ms": "5", "cleanup.policy": "compact"})
    events = await namespace.wait_event("orders", "Normal", "DriftReverted")
    assert controller.changes[-1] == AlterTopicConfig(topic="orders", set={"retention.ms": "1000"})
    assert events[-2:] == [
        ("Warning", "DriftDetected"),
        ("Normal", "DriftReverted"),
    ]
    body = await namespace.wait_condition("orders", "Synced", "True")
    assert "drift" not in body["status"]


async def test_a_key_that_is_hands_off_is_neither_set_nor_reset(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", config={"retention.ms": 1000, "segment.ms": 1}))
    await namespace.wait_condition("orders", "Ready", "True")
    controller.commands.clear()

    namespace.apply(topic("orders", config={"retention.ms": None, "segment.ms": 1}))
    await namespace.wait_condition("orders", "Ready", "True")
    namespace.apply(topic("orders", handsOffConfig=["segment.ms"]))
    body = await namespace.wait_condition("orders", "Ready", "True")

    assert controller.changes == []
    assert "managedConfig" not in body["status"]


async def test_health_follows_the_brokers(namespace: Namespace, controller: LiveController) -> None:
    namespace.apply(topic("orders", replicaAssignment=[[1, 2], [2, 3], [3, 2]]))
    await namespace.wait_condition("orders", "Healthy", "True")

    controller.cluster.crash_broker(1)
    body = await namespace.wait_condition("orders", "Healthy", "False", "UnderReplicated")
    assert condition(body, "Ready")["status"] == "True"
    assert body["status"]["underReplicated"] == 1
    assert body["status"]["partitionStates"][0]["partition"] == 0

    controller.cluster.crash_broker(2)
    body = await namespace.wait_condition("orders", "Ready", "False", "PartitionsLeaderless")
    assert body["status"]["leaderless"] == 1
    assert body["status"]["partitionStates"][0]["partition"] == 0
    assert condition(body, "Reconciling")["status"] == "True"

    controller.cluster.start_broker(1)
    controller.cluster.start_broker(2)
    await namespace.wait_condition("orders", "Healthy", "True")
    await namespace.wait_condition("orders", "Ready", "True")


async def test_deleting_the_resource_deletes_the_topic_first(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders"))
    await namespace.wait_condition("orders", "Ready", "True")

    controller.cluster.pause_broker(2)
    namespace.delete("orders")
    body = await namespace.wait_condition("orders", "Ready", "False", "Deleting")
    assert condition(body, "Reconciling")["status"] == "True"
    topic_id = topic_id_from_text(body["status"]["topicId"])
    deletion = controller.changes[-1]
    assert isinstance(deletion, DeleteTopic)
    assert (deletion.topic, deletion.topic_id) == ("orders", topic_id)
    assert hex(deletion.czxid) == body["status"]["topicCzxid"]

    controller.cluster.resume_broker(2)
    await namespace.wait_gone("orders")
    await namespace.wait_event("orders", "Normal", "TopicDeleted")


async def test_a_topic_deleted_right_after_its_creation_goes_too(
    namespace: Namespace, controller: LiveController
) -> None:
    for number in range(8):
        namespace.apply(topic(f"hasty-{number}"))
        # From not noticed yet to just created, wherever the loop gets in these moments.
        await asyncio.sleep(0.01 * number)
        await namespace.delete_and_wait(f"hasty-{number}")
    assert not controller.view.topics


async def test_retain_keeps_the_topic_and_needs_no_finalizer(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", deletionPolicy="Retain"))
    body = await namespace.wait_condition("orders", "Ready", "True")
    assert "finalizers" not in body["metadata"]

    await namespace.delete_and_wait("orders")
    assert "orders" in controller.view.topics


async def test_protect_refuses_until_the_policy_changes(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", deletionPolicy="Protect"))
    await namespace.wait_condition("orders", "Ready", "True")

    namespace.delete("orders")
    body = await namespace.wait_condition("orders", "Stalled", "True", "DeletionProtected")
    assert "set deletionPolicy to Retain" in condition(body, "Stalled")["message"]
    assert "orders" in controller.view.topics

    namespace.patch("orders", deletionPolicy="Retain")
    await namespace.wait_gone("orders")
    assert "orders" in controller.view.topics


async def test_a_finalizer_of_somebody_else_is_left_alone(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders"))
    await namespace.wait_condition("orders", "Ready", "True")
    finalizers = [FINALIZER, "example.com/other"]
    namespace.client.patch(f"{namespace.topics}/orders", {"metadata": {"finalizers": finalizers}})
    namespace.delete("orders")
    body = await namespace.wait(
        "orders",
        lambda body: body["metadata"]["finalizers"] == ["example.com/other"],
        describe="only the other finalizer to be left",
    )
    assert "orders" not in controller.view.topics
    assert body["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("controller_config", [{"delete_topic_enable": False}])
async def test_deletion_disabled_in_kafka_says_the_way_out(
    namespace: Namespace, operator: KubeOperator
) -> None:
    namespace.apply(topic("orders"))
    await namespace.wait_condition("orders", "Ready", "True")
    namespace.delete("orders")
    body = await namespace.wait_condition("orders", "Stalled", "True", "TopicDeletionDisabled")
    assert "set deletionPolicy to Retain" in condition(body, "Stalled")["message"]
    namespace.patch("orders", deletionPolicy="Retain")
    await namespace.wait_gone("orders")
