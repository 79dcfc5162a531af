"""KafkaTopics from creation to deletion, as far as the API server takes part in it."""

from __future__ import annotations

import asyncio

import pytest

from regent.admin.commands import AlterTopicConfig, CreatePartitions, CreateTopic
from regent.kube.operator import KubeOperator
from regent.model.topic import topic_id_from_text
from regent.resources.kafka_topic import FINALIZER
from tests.integration.kube.conftest import Namespace, condition, is_reconciled, topic
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


async def test_a_topic_deleted_right_after_its_creation_goes_too(
    namespace: Namespace, controller: LiveController
) -> None:
    for number in range(8):
        namespace.apply(topic(f"hasty-{number}"))
        # From not noticed yet to just created, wherever the loop gets in these moments.
        await asyncio.sleep(0.01 * number)
        await namespace.delete_and_wait(f"hasty-{number}")
    events_of_topics_left = {name: namespace.events(name) for name in controller.view.topics}
    assert not events_of_topics_left


async def test_the_oldest_resource_wins_and_the_next_heals(
    namespace: Namespace, controller: LiveController
) -> None:
    for name in ("zebra", "ant", "bee"):
        namespace.apply(topic(name, topicName="shared"))
        await namespace.wait(name, is_reconciled, describe=f"a status of {name}")
        # Creation timestamps have whole seconds: make sure that they differ.
        await asyncio.sleep(1.1)
    await namespace.wait_condition("zebra", "Ready", "True")
    for loser in ("ant", "bee"):
        body = await namespace.wait_condition(loser, "Stalled", "True", "ResourceConflict")
        assert f"KafkaTopic {namespace.name}/zebra" in condition(body, "Ready")["message"]
        assert "finalizers" not in body["metadata"]
    assert len(controller.changes) == 1

    await namespace.delete_and_wait("zebra")
    body = await namespace.wait_condition("ant", "Ready", "True")
    assert body["status"]["ownership"] == "Adopted"
    await namespace.wait_condition("bee", "Stalled", "True", "ResourceConflict")
    # The successor still declares the topic, so the winner's deletion has kept the data.
    assert len(controller.changes) == 1
    await namespace.wait_event("zebra", "Normal", "TopicHandedOver")


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
