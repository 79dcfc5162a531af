"""The API server is killed, goes back to an earlier state, and loses the definition of KafkaTopics,
and all KafkaTopics with the definition."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from regent.admin.commands import DeleteTopic
from sandbox import KubernetesApi
from tests.integration.kube.conftest import (
    Namespace,
    grant,
    running,
    topic,
)
from tests.support.definitions import install_definitions, remove_definitions
from tests.support.kubernetes_client import DEFINITIONS
from tests.support.live_controller import LiveController

pytestmark = pytest.mark.integration

CRD = "kafkatopics.kafka.regent.dev"


@pytest.fixture(scope="module")
def api(changing_api: KubernetesApi) -> KubernetesApi:
    return changing_api


def back_up(api: KubernetesApi, data: Path, backup: Path) -> None:
    """Copy the store as it is at one moment."""
    api.etcd.pause()
    shutil.copytree(data, backup)
    api.etcd.resume()


def restore(api: KubernetesApi, data: Path, backup: Path) -> None:
    """Exchange the store. Everything is stopped then."""
    # At once: an orderly stop of the API server waits for the watches that are open.
    api.api_server.kill()
    api.etcd.stop()
    shutil.rmtree(data)
    shutil.copytree(backup, data)


async def test_an_outage_of_the_api_server_heals_and_a_restored_backup_is_noticed(
    api: KubernetesApi,
    namespace: Namespace,
    controller: LiveController,
    kubeconfig: None,
    tmp_path: Path,
) -> None:
    data, backup = api.etcd.log_path.with_name("etcd-data"), tmp_path / "backup"
    async with running(controller, namespace, check_interval_s=0.5) as operator:
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        await asyncio.to_thread(back_up, api, data, backup)

        api.api_server.kill()
        controller.cluster.stop_broker(2)
        controller.cluster.alter_config("orders", {})
        await asyncio.to_thread(api.start)
        await namespace.wait_condition("orders", "Healthy", "False")
        controller.cluster.start_broker(2)

        namespace.apply(topic("later"))
        await namespace.wait_condition("later", "Ready", "True")
        for partitions in range(4, 14):
            namespace.patch("orders", partitions=partitions)
        await namespace.wait_condition("orders", "Ready", "True")

        await asyncio.to_thread(restore, api, data, backup)
        await asyncio.to_thread(api.start)
        namespace.patch("orders", partitions=14)
        await namespace.wait_condition("orders", "Ready", "True")
        assert len(controller.view.topics["orders"].partitions) == 14
        assert "later" in controller.view.topics

        # Versions have caught up before Regent looks.
        newest = operator.kafka_topics.cache.newest_version
        await asyncio.to_thread(restore, api, data, backup)
        await asyncio.to_thread(api.advance_store, newest + 100)
        await asyncio.to_thread(api.start)
        # The resource as it is now decides, and not as it was.
        body = await namespace.wait_condition("orders", "Stalled", "True", "PartitionsDecrease")
        assert body["spec"]["partitions"] == 3


def _is_being_deleted(body: dict[str, Any]) -> bool:
    return "deletionTimestamp" in body["metadata"]


async def create_and_remove_definitions(api: KubernetesApi, namespace: Namespace) -> dict[str, Any]:
    """Create topics of three deletion policies, and delete their definition; the first resource."""
    namespace.apply(
        topic("orders"),
        topic("explicit", deletionPolicy="Delete"),
        topic("kept", deletionPolicy="Protect"),
    )
    created = await namespace.wait_condition("orders", "Ready", "True")
    await namespace.wait_condition("explicit", "Ready", "True")
    await namespace.wait_condition("kept", "Ready", "True")
    await asyncio.to_thread(remove_definitions, api, CRD)
    return created


async def test_topics_stay_and_belong_to_resources_that_are_made_anew(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    async with running(controller, namespace, check_interval_s=0.5):
        created = await create_and_remove_definitions(api, namespace)
        assert not [each for each in controller.changes if isinstance(each, DeleteTopic)]
        await namespace.wait_event("orders", "Normal", "TopicRetained")

        install_definitions(api)
        namespace.apply(topic("orders"))
        body = await namespace.wait_condition("orders", "Ready", "True")
        assert body["status"]["topicId"] == created["status"]["topicId"]
        assert body["status"]["ownership"] == "Adopted"


async def test_topics_stay_whose_resources_outlived_their_definition(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    """A user removes the finalizer of the definition, because Regent's finalizers stay. The next
    definition brings the objects back, and they are still being deleted."""
    async with running(controller, namespace):
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
    namespace.client.delete(f"{DEFINITIONS}/{CRD}")
    await namespace.wait("orders", _is_being_deleted, describe="the deletion of the resource")
    namespace.client.patch(f"{DEFINITIONS}/{CRD}", {"metadata": {"finalizers": []}})
    install_definitions(api)
    assert _is_being_deleted(namespace.get("orders"))
    async with running(controller, namespace):
        await namespace.wait_event("orders", "Normal", "TopicRetained")
        assert not [each for each in controller.changes if isinstance(each, DeleteTopic)]


async def test_topics_stay_where_regent_may_not_read_the_definition(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, limited: None
) -> None:
    """With Roles in namespaces alone."""
    grant(api, namespace.name, "list", "watch")
    async with running(controller, namespace):
        await create_and_remove_definitions(api, namespace)
        await namespace.wait_event("orders", "Normal", "TopicRetained")
    assert not [each for each in controller.changes if isinstance(each, DeleteTopic)]
    install_definitions(api)


async def test_without_the_right_to_know_it_a_deletion_is_what_it_seems(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, limited: None
) -> None:
    grant(api, namespace.name, "list", "watch")
    async with running(controller, namespace):
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        await namespace.delete_and_wait("orders")
    assert [type(each) for each in controller.changes][-1] is DeleteTopic
