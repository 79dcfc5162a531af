"""Whose topic it is: conflicts between resources, adoption, and policies of management."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.kube.conftest import (
    Namespace,
    condition,
    is_reconciled,
    topic,
    wait_for,
)
from tests.support.live_controller import LiveController

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


async def _apply_in_order(namespace: Namespace, *names: str, topic_name: str) -> None:
    """Creation timestamps have whole seconds: make sure that they differ."""
    for name in names:
        namespace.apply(topic(name, topicName=topic_name))
        await namespace.wait(name, is_reconciled, describe=f"a status of {name}")
        await asyncio.sleep(1.1)


async def test_the_oldest_resource_wins_and_the_next_heals(
    namespace: Namespace, controller: LiveController
) -> None:
    await _apply_in_order(namespace, "zebra", "ant", "bee", topic_name="shared")
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


async def test_a_loser_never_deletes(namespace: Namespace, controller: LiveController) -> None:
    await _apply_in_order(namespace, "first", "second", topic_name="shared")
    await namespace.delete_and_wait("second")
    assert "shared" in controller.view.topics
    await namespace.wait_condition("first", "Ready", "True")


async def test_an_observer_conflicts_with_nobody(
    namespace: Namespace, controller: LiveController
) -> None:
    await _apply_in_order(namespace, "watcher", topic_name="shared")
    namespace.patch("watcher", managementPolicy="Observe")
    namespace.apply(topic("owner", topicName="shared", partitions=4))
    await namespace.wait_condition("owner", "Stalled", "False")
    body = await namespace.wait_condition("watcher", "Synced", "False", "Drifted")
    assert condition(body, "Ready") | {"status": "True", "reason": "Observed"} == condition(
        body, "Ready"
    )
    assert body["status"]["drift"] == [{"field": "partitions", "desired": "3", "actual": "4"}]
    await namespace.delete_and_wait("watcher")
    assert "shared" in controller.view.topics


async def test_an_existing_topic_is_adopted_and_changed_as_declared(
    namespace: Namespace, controller: LiveController
) -> None:
    controller.cluster.create_topic(
        "orders", [(1, 2, 3)] * 2, {"retention.ms": "5", "segment.ms": "9"}
    )
    namespace.apply(topic("orders", config={"retention.ms": 6}))
    body = await namespace.wait_condition("orders", "Ready", "True")
    assert body["status"]["ownership"] == "Adopted"
    assert body["status"]["partitions"] == 3
    # What the resource does not mention belongs to somebody else.
    assert controller.cluster.config("orders") == {"retention.ms": "6", "segment.ms": "9"}
    await namespace.wait_event("orders", "Normal", "TopicAdopted")


async def test_a_preview_shows_what_adoption_would_change(
    namespace: Namespace, controller: LiveController
) -> None:
    controller.cluster.create_topic("orders", [(1, 2, 3)] * 2, {"retention.ms": "5"})
    namespace.apply(topic("orders", adoptionPolicy="Preview", config={"retention.ms": 6}))
    body = await namespace.wait_condition("orders", "Stalled", "True", "AdoptionPreview")
    assert body["status"]["drift"] == [
        {"field": "partitions", "desired": "3", "actual": "2"},
        {"field": "config[retention.ms]", "desired": "6", "actual": "5"},
    ]
    assert controller.changes == []
    assert "finalizers" not in body["metadata"]

    namespace.patch("orders", adoptionPolicy="Adopt")
    body = await namespace.wait_condition("orders", "Ready", "True")
    assert "drift" not in body["status"]


async def test_adoption_refused(namespace: Namespace, controller: LiveController) -> None:
    controller.cluster.create_topic("orders", [(1, 2, 3)] * 3)
    namespace.apply(topic("orders", adoptionPolicy="Refuse"))
    await namespace.wait_condition("orders", "Stalled", "True", "AdoptionRefused")
    await namespace.delete_and_wait("orders")
    assert "orders" in controller.view.topics
    assert controller.changes == []


async def test_with_refuse_a_topic_of_its_own_is_no_foreign_one(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", adoptionPolicy="Refuse"))
    body = await namespace.wait_condition("orders", "Ready", "True")
    assert body["status"]["ownership"] == "Created"
    namespace.patch("orders", partitions=4)
    await namespace.wait_condition("orders", "Ready", "True")
    await namespace.delete_and_wait("orders")
    assert "orders" not in controller.view.topics


async def test_with_refuse_a_topic_created_again_by_somebody_else_is_foreign(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", adoptionPolicy="Refuse", managementPolicy="Managed"))
    await namespace.wait_condition("orders", "Ready", "True")
    namespace.patch("orders", managementPolicy="Paused")
    await namespace.wait_condition("orders", "Ready", "True", "Paused")
    controller.cluster.delete_topic("orders")
    await namespace.wait_condition("orders", "Stalled", "True", "TopicDeletedExternally")
    await wait_for(lambda: "orders" not in controller.view.topics, describe="the topic to be gone")
    controller.cluster.create_topic("orders", [(1, 2, 3)] * 3)
    namespace.patch("orders", managementPolicy="Managed")
    await namespace.wait_condition("orders", "Stalled", "True", "AdoptionRefused")
    await namespace.delete_and_wait("orders")
    assert "orders" in controller.view.topics


async def test_paused_shows_drift_and_writes_nothing(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders", config={"retention.ms": 1}))
    await namespace.wait_condition("orders", "Ready", "True")
    namespace.patch("orders", managementPolicy="Paused", partitions=5)
    body = await namespace.wait_condition("orders", "Synced", "False", "Drifted")
    assert condition(body, "Ready")["status"] == "True"
    assert len(controller.changes) == 1

    namespace.patch("orders", managementPolicy="Managed")
    await namespace.wait_condition("orders", "Synced", "True")
    assert len(controller.view.topics["orders"].partitions) == 5


async def test_deleting_a_paused_resource_keeps_the_topic(
    namespace: Namespace, controller: LiveController
) -> None:
    namespace.apply(topic("orders"))
    await namespace.wait_condition("orders", "Ready", "True")
    namespace.patch("orders", managementPolicy="Paused")
    await namespace.wait_condition("orders", "Ready", "True", "Paused")
    await namespace.delete_and_wait("orders")
    assert "orders" in controller.view.topics
    await namespace.wait_event("orders", "Normal", "TopicRetained")
