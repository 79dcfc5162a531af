"""KafkaTopics that cannot be served: everybody can see it, and the controller goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from regent.kube.health import KubeHealth
from regent.kube.health_metrics import KubeHealthCollector
from regent.resources.crd import crd
from regent.resources.kafka_topic import KafkaTopic
from sandbox import KubernetesApi
from sandbox.definitions import apply_definitions
from sandbox.regent_process import run_regent
from tests.integration.kube.conftest import (
    ROOT,
    Namespace,
    condition,
    grant,
    supervised,
    topic,
    wait_for,
)
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    """An API server without CRDs, whose namespaces go away when they are deleted."""
    with KubernetesApi(users={"regent": []}, controller_manager=True) as server:
        yield server


def install_crds(api: KubernetesApi) -> None:
    apply_definitions(api.kubectl, ROOT / "crds")


def metric(health: KubeHealth, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(KubeHealthCollector(health))
    return registry.get_sample_value(name, labels)


@pytest.mark.usefixtures("kubeconfig")
async def test_a_missing_crd_takes_no_controller_out_of_service_but_shows(
    api: KubernetesApi, cluster: SimulatedCluster
) -> None:
    namespace = Namespace(api, "without-crd")
    api.kubectl("create", "namespace", namespace.name)
    controller = LiveController(cluster)
    async with supervised(controller, [namespace.name]) as health:
        await wait_for(
            lambda: "kafkatopics.kafka.regent.dev is not installed" in (health.remark() or ""),
            describe="a remark",
        )
        assert metric(health, "regent_kafkatopics_unlisted") == 1
        assert health.problem() is None
        assert controller.view.is_active

        await asyncio.to_thread(install_crds, api)
        await wait_for(lambda: health.remark() is None, describe="no remark any more")
        assert metric(health, "regent_kafkatopics_unlisted") == 0
        namespace.apply(topic("orders", deletionPolicy="Retain"))
        await namespace.wait_condition("orders", "Ready", "True")

        await asyncio.to_thread(api.kubectl, "delete", "-f", ROOT / "crds")
        await wait_for(lambda: health.remark() is not None, describe="another remark")
        assert controller.view.is_active

        await asyncio.to_thread(install_crds, api)
        namespace.apply(topic("payments", deletionPolicy="Retain"))
        await namespace.wait_condition("payments", "Ready", "True")
        await asyncio.to_thread(api.kubectl, "delete", "-f", ROOT / "crds")


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
    await asyncio.to_thread(api.kubectl, "apply", "-f", "-", stdin=json.dumps(definition))
    namespace = Namespace(api, "older-crd")
    api.kubectl("create", "namespace", namespace.name)
    controller = LiveController(cluster)
    async with supervised(controller, [namespace.name]) as health:
        await wait_for(
            lambda: "drops spec.clusterRef;" in (health.remark() or ""), describe="a remark"
        )
        assert health.problem() is None
        await asyncio.to_thread(install_crds, api)
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
    await asyncio.to_thread(install_crds, api)
    home, shop = Namespace(api, "home"), Namespace(api, "shop")
    for namespace in (home, shop):
        api.kubectl("create", "namespace", namespace.name)
        grant(api, namespace.name, "list", "watch")
    shop.apply(topic("orders"))
    controller = LiveController(cluster)
    async with supervised(controller, [home.name, shop.name]) as health:
        await shop.wait_condition("orders", "Ready", "True")
        shop.kubectl("delete", "rolebinding", "regent")
        api.kubectl("delete", "namespace", shop.name, "--wait=false")
        await wait_for(lambda: shop.name in health.unreadable, describe="the namespace to be named")
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
        await asyncio.to_thread(
            api.kubectl, "wait", "--for=delete", "namespace/shop", "--timeout=180s"
        )
        assert "orders" in controller.view.topics, "released, not deleted"
        home.apply(topic("orders"))
        body = await home.wait_condition("orders", "Stalled", "True", "ResourceConflict")
        message = condition(body, "Ready")["message"]
        assert "if the namespace is gone, take it off the list" in message
