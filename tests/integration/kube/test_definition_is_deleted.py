"""The CustomResourceDefinition of KafkaTopics is deleted under Regent, and all of them with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from regent.controller.commands import DeleteTopic
from sandbox import KubernetesApi, wait_until_async
from sandbox.definitions import apply_definitions
from tests.integration.kube.conftest import ROOT, Namespace, grant, running, topic
from tests.support.live_controller import LiveController

pytestmark = pytest.mark.integration

CRD = "kafkatopics.kafka.regent.dev"


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    """An API server of the module's own: others need the definition, which each test restores."""
    with KubernetesApi(users={"regent": []}) as server:
        install(server)
        yield server


def install(api: KubernetesApi) -> None:
    apply_definitions(api.kubectl, ROOT / "crds")


async def delete_definition(api: KubernetesApi) -> None:
    api.kubectl("delete", "crd", CRD, "--wait=false")

    async def installed() -> bool:
        names = await asyncio.to_thread(api.kubectl, "get", "crd", "-o", "name")
        return CRD in names

    await wait_until_async(
        installed, until=lambda there: not there, describe="the definition to go", timeout_s=120
    )


def _is_being_deleted(body: dict[str, Any]) -> bool:
    return "deletionTimestamp" in body["metadata"]


async def test_topics_stay_and_belong_to_resources_that_are_made_anew(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    async with running(controller, namespace, check_interval_s=0.5):
        namespace.apply(
            topic("orders"),
            topic("explicit", deletionPolicy="Delete"),
            topic("kept", deletionPolicy="Protect"),
        )
        created = await namespace.wait_condition("orders", "Ready", "True")
        await namespace.wait_condition("explicit", "Ready", "True")
        await namespace.wait_condition("kept", "Ready", "True")

        await delete_definition(api)
        assert not [each for each in controller.changes if isinstance(each, DeleteTopic)]
        await namespace.wait_event("orders", "Normal", "TopicRetained")

        install(api)
        namespace.apply(topic("orders"))
        body = await namespace.wait_condition("orders", "Ready", "True")
        assert body["status"]["topicId"] == created["status"]["topicId"]
        assert body["status"]["ownership"] == "Adopted"


async def test_topics_stay_whose_resources_outlived_their_definition(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    """Somebody took the definition's own finalizer off, as nobody took Regent's off: with another
    definition its objects are there again, and are still being deleted."""
    async with running(controller, namespace):
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
    api.kubectl("delete", "crd", CRD, "--wait=false")
    await namespace.wait("orders", _is_being_deleted, describe="the deletion of the resource")
    api.kubectl("patch", "crd", CRD, "--type=merge", "-p", '{"metadata":{"finalizers":[]}}')
    install(api)
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
        namespace.apply(
            topic("orders"),
            topic("explicit", deletionPolicy="Delete"),
            topic("kept", deletionPolicy="Protect"),
        )
        await namespace.wait_condition("orders", "Ready", "True")
        await namespace.wait_condition("explicit", "Ready", "True")
        await namespace.wait_condition("kept", "Ready", "True")
        await delete_definition(api)
        await namespace.wait_event("orders", "Normal", "TopicRetained")
    assert not [each for each in controller.changes if isinstance(each, DeleteTopic)]
    install(api)


async def test_without_the_right_to_know_it_a_deletion_is_what_it_seems(
    api: KubernetesApi, namespace: Namespace, controller: LiveController, limited: None
) -> None:
    grant(api, namespace.name, "list", "watch")
    async with running(controller, namespace):
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        await namespace.delete_and_wait("orders")
    assert [type(each) for each in controller.changes][-1] is DeleteTopic
