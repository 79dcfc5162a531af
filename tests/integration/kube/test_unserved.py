"""KafkaTopics that cannot be served: everybody can see it, and the controller goes on."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from regent.kube.health import KubeHealth
from regent.kube.health_metrics import KubeHealthCollector
from regent.resources.crd import crd
from regent.resources.kafka_topic import KafkaTopic
from sandbox import KubernetesApi
from sandbox.regent_process import run_regent
from tests.integration.kube.conftest import (
    Namespace,
    condition,
    grant,
    supervised,
    topic,
    wait_for,
)
from tests.support.definitions import install_definitions, remove_definitions
from tests.support.kubernetes_client import KubernetesClient
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def api(changing_api: KubernetesApi) -> KubernetesApi:
    return changing_api


def make_namespace(api: KubernetesApi, name: str) -> Namespace:
    namespace = Namespace(api, name)
    namespace.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return namespace


def metric(health: KubeHealth, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(KubeHealthCollector(health))
    return registry.get_sample_value(name, labels)


@pytest.mark.usefixtures("kubeconfig")
async def test_a_missing_crd_takes_no_controller_out_of_service_but_shows(
    api: KubernetesApi, cluster: SimulatedCluster
) -> None:
    await asyncio.to_thread(remove_definitions, api)
    namespace = make_namespace(api, "without-crd")
    controller = LiveController(cluster)
    async with supervised(controller, [namespace.name]) as health:
        await wait_for(
            lambda: "kafkatopics.kafka.regent.dev is not installed" in (health.remark() or ""),
            describe="a remark",
        )
        assert metric(health, "regent_kafkatopics_unlisted") == 1
        assert health.problem() is None
        assert controller.view.is_active

        await asyncio.to_thread(install_definitions, api)
        await wait_for(lambda: health.remark() is None, describe="no remark any more")
        assert metric(health, "regent_kafkatopics_unlisted") == 0
        namespace.apply(topic("orders", deletionPolicy="Retain"))
        await namespace.wait_condition("orders", "Ready", "True")

        await asyncio.to_thread(remove_definitions, api)
        await wait_for(lambda: health.remark() is not None, describe="another remark")
        assert controller.view.is_active

        await asyncio.to_thread(install_definitions, api)
        namespace.apply(topic("payments", deletionPolicy="Retain"))
        await namespace.wait_condition("payments", "Ready", "True")


@pytest.mark.usefixtures("kubeconfig")
async def test_a_definition_that_drops_fields_is_named_until_it_is_updated(
    api: KubernetesApi, cluster: SimulatedCluster
) -> None:
    """Without ``clusterRef`` the default Regent serves what is for another one."""
    definition = crd(KafkaTopic)
    [version] = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    del schema["x-kubernetes-validations"]
    del schema["properties"]["spec"]["properties"]["clusterRef"]
    await asyncio.to_thread(KubernetesClient(api).apply, definition)
    namespace = make_namespace(api, "older-crd")
    controller = LiveController(cluster)
    async with supervised(controller, [namespace.name]) as health:
        await wait_for(
            lambda: "drops spec.clusterRef;" in (health.remark() or ""), describe="a remark"
        )
        assert health.problem() is None
        await asyncio.to_thread(install_definitions, api)
        await wait_for(lambda: health.remark() is None, describe="no remark any more")


def release(api: KubernetesApi, namespace: str) -> None:
    """What somebody with the rights in a namespace does by hand."""
    outcome = run_regent(
        "release", "--all", "--namespace", namespace, KUBECONFIG=str(api.kubeconfig)
    )
    assert outcome.exit_code == 0, outcome


@pytest.mark.usefixtures("limited")
async def test_a_namespace_whose_role_went_first_is_named_with_the_command_that_lets_it_go(
    api: KubernetesApi, cluster: SimulatedCluster
) -> None:
    """Kubernetes deletes the Role and the KafkaTopics of a namespace in an order of its own."""
    home, shop = make_namespace(api, "home"), make_namespace(api, "shop")
    for namespace in (home, shop):
        grant(api, namespace.name, "list", "watch")
    shop.apply(topic("orders"))
    controller = LiveController(cluster)
    async with supervised(controller, [home.name, shop.name]) as health:
        await shop.wait_condition("orders", "Ready", "True")
        bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{shop.name}/rolebindings"
        shop.client.delete(f"{bindings}/regent")
        shop.client.delete(f"/api/v1/namespaces/{shop.name}")
        await wait_for(lambda: shop.name in health.unreadable, describe="the namespace to be named")
        # The namespace controller, which does not run here, deletes the resources of the namespace.
        # Regent would delete the topic if its permission had not gone before.
        shop.delete("orders")
        assert "`regent release --all --namespace shop`" in (health.remark() or "")
        assert metric(health, "regent_namespace_unreadable", namespace="shop") == 1
        assert shop.name in str(health.status()["unreadableNamespaces"])
        body = await shop.wait(
            "orders",
            lambda body: "deletionTimestamp" in body["metadata"],
            describe="the namespace's KafkaTopic to be deleted",
        )
        assert condition(body, "Ready")["status"] == "True", "nobody may say anything else"

        await asyncio.to_thread(release, api, shop.name)
        await shop.wait_gone("orders")
        assert "orders" in controller.view.topics, "released, not deleted"
        home.apply(topic("orders"))
        body = await home.wait_condition("orders", "Stalled", "True", "ResourceConflict")
        message = condition(body, "Ready")["message"]
        assert "if the namespace is gone, take it off the list" in message
