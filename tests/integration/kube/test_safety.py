"""What a KafkaTopic must never do to a cluster, and what its status must never hide."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from regent.controller.commands import CreateTopic, DeleteTopic
from regent.model.partition import ReplicaAssignment
from regent.model.topic import topic_id_to_text
from regent.zk_data import paths
from regent.zk_data.operations import Create, SetData
from regent.zk_data.topics import TopicZNode, encode_topic
from tests.integration.kube.conftest import Namespace, condition, running, topic, wait_for
from tests.support.live_controller import LiveController

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("kubeconfig")]


def _znode(topic_id: uuid.UUID) -> bytes:
    assignment = {partition: ReplicaAssignment((1, 2, 3)) for partition in range(3)}
    return encode_topic(TopicZNode(topic_id, assignment))


def _store_intent(namespace: Namespace, topic_id: uuid.UUID) -> None:
    """A process has stored what it is about to create, and was gone a moment later."""
    status = {"ownership": "Creating", "intendedTopicId": topic_id_to_text(topic_id)}
    namespace.patch_status("orders", status)


class TestIntent:
    async def test_a_topic_that_could_not_be_read_is_not_seized(
        self, namespace: Namespace, controller: LiveController
    ) -> None:
        controller.cluster.write(Create(paths.topic("orders"), b"garbage"))
        async with running(controller, namespace):
            namespace.apply(topic("orders", adoptionPolicy="Refuse", deletionPolicy="Delete"))
            body = await namespace.wait_condition("orders", "Stalled", "True", "TopicsUnreadable")
            assert "ownership" not in body["status"]
            controller.cluster.write(SetData(paths.topic("orders"), _znode(uuid.uuid4())))
            body = await namespace.wait_condition("orders", "Stalled", "True", "AdoptionRefused")
            assert "ownership" not in body["status"]
            await namespace.delete_and_wait("orders")
        assert "orders" in controller.cluster.topics
        assert not any(isinstance(change, DeleteTopic) for change in controller.changes)

    async def test_after_a_crash_the_id_tells_whose_topic_it_is(
        self, namespace: Namespace, controller: LiveController
    ) -> None:
        own = uuid.uuid4()
        namespace.apply(topic("orders", adoptionPolicy="Refuse"))
        _store_intent(namespace, own)
        controller.cluster.write(Create(paths.topic("orders"), _znode(own)))
        async with running(controller, namespace):
            body = await namespace.wait_condition("orders", "Ready", "True")
        assert body["status"]["ownership"] == "Created"
        assert "intendedTopicId" not in body["status"]

    async def test_after_a_crash_a_foreign_topic_stays_foreign(
        self, namespace: Namespace, controller: LiveController
    ) -> None:
        namespace.apply(topic("orders", adoptionPolicy="Refuse", partitions=5))
        _store_intent(namespace, uuid.uuid4())
        controller.cluster.write(Create(paths.topic("orders"), _znode(uuid.uuid4())))
        async with running(controller, namespace):
            await namespace.wait_condition("orders", "Stalled", "True", "AdoptionRefused")
            await namespace.delete_and_wait("orders")
        assert controller.changes == []


class TestForeignDeletion:
    async def test_a_lost_topic_is_reported_and_created_again_on_request_only(
        self, namespace: Namespace, controller: LiveController
    ) -> None:
        async with running(controller, namespace):
            namespace.apply(topic("orders"))
            before = await namespace.wait_condition("orders", "Ready", "True")
            controller.cluster.delete_topic("orders")
            body = await namespace.wait_condition(
                "orders", "Stalled", "True", "TopicDeletedExternally"
            )
            assert "set onForeignDeletion to Recreate" in condition(body, "Ready")["message"]
            lost = body["status"]["lastForeignDeletion"]
            assert lost["topicId"] == before["status"]["topicId"]
            await wait_for(
                lambda: "orders" not in controller.view.topics, describe="the topic to be gone"
            )
            assert len(controller.changes) == 1

            namespace.patch("orders", onForeignDeletion="Recreate")
            after = await namespace.wait_condition("orders", "Ready", "True")
            assert after["status"]["topicId"] != before["status"]["topicId"]
            assert after["status"]["lastForeignDeletion"] == lost
            assert after["status"]["ownership"] == "Created"
            await namespace.wait(
                "orders",
                lambda _: namespace.events("orders").count(("Normal", "TopicCreated")) == 2,
                describe="the Event of the second creation",
            )
        assert namespace.events("orders").count(("Warning", "TopicDeletedExternally")) == 1

    async def test_recreate_does_not_hide_the_loss(
        self, namespace: Namespace, controller: LiveController
    ) -> None:
        async with running(controller, namespace):
            namespace.apply(topic("orders", onForeignDeletion="Recreate"))
            before = await namespace.wait_condition("orders", "Ready", "True")
            controller.cluster.delete_topic("orders")
            after = await namespace.wait(
                "orders",
                lambda body: (
                    body["status"].get("topicId") not in (None, before["status"]["topicId"])
                    and condition(body, "Ready")["status"] == "True"
                ),
                describe="the topic to be created again",
            )
            assert "lastForeignDeletion" in after["status"]
            await namespace.wait_event("orders", "Warning", "TopicDeletedExternally")
        assert sum(isinstance(c, CreateTopic) for c in controller.changes) == 2

    async def test_a_topic_replaced_while_regent_was_away_is_reported(
        self, namespace: Namespace, controller: LiveController
    ) -> None:
        async with running(controller, namespace):
            namespace.apply(topic("orders", adoptionPolicy="Refuse"))
            await namespace.wait_condition("orders", "Ready", "True")
        controller.cluster.delete_topic("orders")
        await wait_for(
            lambda: "orders" not in controller.view.topics, describe="the topic to be gone"
        )
        controller.cluster.create_topic("orders", [(1, 2, 3)] * 3)
        await wait_for(lambda: "orders" in controller.view.topics, describe="the other topic")
        async with running(controller, namespace):
            body = await namespace.wait_condition("orders", "Stalled", "True", "AdoptionRefused")
            assert "recreatedAs" in body["status"]["lastForeignDeletion"]
            await namespace.delete_and_wait("orders")
            await namespace.wait_event("orders", "Warning", "TopicRecreatedExternally")
        assert "orders" in controller.view.topics


async def test_a_deletion_that_has_begun_is_not_called_retained(
    namespace: Namespace, controller: LiveController
) -> None:
    async with running(controller, namespace):
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        controller.cluster.pause_broker(2)
        namespace.delete("orders")
        await namespace.wait(
            "orders",
            lambda body: "waiting for brokers [2]" in condition(body, "Ready")["message"],
            describe="the deletion to name the broker it waits for",
        )
        namespace.patch("orders", deletionPolicy="Retain")
        await namespace.wait_gone("orders")
        events = await namespace.wait_event("orders", "Warning", "TopicDeletionContinues")
    assert "TopicRetained" not in [reason for _, reason in events]
    controller.cluster.resume_broker(2)
    await wait_for(lambda: "orders" not in controller.cluster.topics, describe="the topic to go")


async def test_an_older_resource_that_stops_observing_does_not_take_the_topic(
    namespace: Namespace, controller: LiveController
) -> None:
    async with running(controller, namespace):
        namespace.apply(topic("elder", topicName="shared", managementPolicy="Observe"))
        await namespace.wait_condition("elder", "Stalled", "True", "TopicNotFound")
        # Creation timestamps have whole seconds: make sure that they differ.
        await asyncio.sleep(1.1)
        namespace.apply(topic("owner", topicName="shared", config={"retention.ms": 5}))
        await namespace.wait_condition("owner", "Ready", "True")
        namespace.patch("elder", managementPolicy="Managed", config={"retention.ms": 6})
        body = await namespace.wait_condition("elder", "Stalled", "True", "ResourceConflict")
        assert f"KafkaTopic {namespace.name}/owner" in condition(body, "Ready")["message"]
        await namespace.wait_condition("owner", "Ready", "True")
    assert controller.cluster.config("shared") == {"retention.ms": "5"}


async def test_an_adopted_topic_is_kept_unless_its_deletion_is_stated(
    namespace: Namespace, controller: LiveController
) -> None:
    controller.cluster.create_topic("orders", [(1, 2, 3)] * 3)
    async with running(controller, namespace):
        namespace.apply(topic("orders"))
        body = await namespace.wait_condition("orders", "Ready", "True")
        assert body["status"]["deletionPolicy"] == "Retain"
        await namespace.delete_and_wait("orders")
        assert "orders" in controller.view.topics
        namespace.apply(topic("orders", deletionPolicy="Delete"))
        body = await namespace.wait_condition("orders", "Ready", "True")
        assert body["status"]["deletionPolicy"] == "Delete"
        await namespace.delete_and_wait("orders")
    assert "orders" not in controller.view.topics
