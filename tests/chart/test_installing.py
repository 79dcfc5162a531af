"""The chart installed in a real API server: definitions, releases, and whether rights suffice."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from regent.kube.client import KubeClient
from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.errors import KubeApiError
from regent.kube.lease import Lease
from regent.kube.operator import run_kube
from regent.kube.settings import KubeSettings
from regent.reconcile.topics.kind import KAFKA_TOPIC
from sandbox import KubernetesApi, wait_until_async
from sandbox.definitions import apply_definitions
from tests.chart.conftest import give_to_user, installed
from tests.support.helm_chart import CHART, ROOT
from tests.support.kubernetes_client import DEFINITIONS, KubernetesClient
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.viewed_port import ViewedPort

pytestmark = pytest.mark.integration

NAME = "kafkatopics.kafka.regent.dev"
WHERE = ("--namespace", "kafka")


@pytest.mark.parametrize("namespaces", [[], ["team-a", "team-b"]], ids=["cluster", "namespaces"])
async def test_installed_for_real_and_the_rights_are_enough(
    api: KubernetesApi,
    namespaces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    client = KubernetesClient(api)
    for namespace in ("team-a", "team-b"):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    scopes = [f"namespaces/{name}/rolebindings" for name in namespaces] or ["clusterrolebindings"]
    bindings = [f"{scope}/kafka-demo-regent" for scope in scopes]
    bindings.append("namespaces/kafka/rolebindings/demo-regent-lease")
    with installed(api, "--set-json", f"namespaces={json.dumps(namespaces)}"):
        give_to_user(api, bindings, monkeypatch, tmp_path)
        await _one_life(client, tuple(namespaces))
        await _keep_a_lease(client)
    # crds.keep
    assert NAME in api.kubectl("get", "crd", "-o", "name")


def test_a_second_release_leaves_the_definitions_to_the_first(api: KubernetesApi) -> None:
    with installed(api):
        with installed(api, namespace="other") as notes:
            assert f"{NAME} belongs to the release kafka/demo" in notes
            api.helm("upgrade", "demo", CHART, "--namespace", "other", "--reuse-values")
            api.helm("upgrade", "demo", CHART, *WHERE, "--reuse-values")
        assert "helm.sh/chart" in api.kubectl("get", "crd", "-o", "yaml")


def test_definitions_from_somewhere_else_are_left_alone(bare_api: KubernetesApi) -> None:
    apply_definitions(bare_api.kubectl, ROOT / "crds")
    before = bare_api.kubectl("get", "crd", "-o", "yaml")
    with installed(bare_api, "--set", "crds.keep=false") as notes:
        assert f"{NAME} belongs to somebody without Helm" in notes
    assert bare_api.kubectl("get", "crd", "-o", "yaml") == before


def test_definitions_can_be_moved_to_a_release_as_the_readme_says(bare_api: KubernetesApi) -> None:
    bare_api.kubectl("apply", "-f", ROOT / "crds")
    with installed(bare_api):
        assert "CustomResourceDefinition" not in bare_api.helm("get", "manifest", "demo", *WHERE)
        bare_api.kubectl(
            "annotate", "crd", NAME, "--overwrite", "meta.helm.sh/release-name=demo",
            "meta.helm.sh/release-namespace=kafka", "helm.sh/resource-policy=keep",
        )  # fmt: skip
        bare_api.kubectl("label", "crd", NAME, "--overwrite", "app.kubernetes.io/managed-by=Helm")
        bare_api.helm("upgrade", "demo", CHART, *WHERE, "--reuse-values")
        assert "CustomResourceDefinition" in bare_api.helm("get", "manifest", "demo", *WHERE)
    assert NAME in bare_api.kubectl("get", "crd", "-o", "name")


def test_an_upgrade_changes_how_pods_are_replaced(api: KubernetesApi) -> None:
    """The API server adds parameters of RollingUpdate, with which it refuses Recreate."""

    def strategy() -> dict[str, Any]:
        body = json.loads(api.kubectl(*WHERE, "get", "deploy", "demo-regent", "-o", "json"))
        return dict(body["spec"]["strategy"])

    options = ("--set", "zookeeper=zk:2181,crds.enabled=false")
    with installed(api, *options):
        assert strategy()["type"] == "RollingUpdate"
        assert strategy()["rollingUpdate"]
        one = ("--set", "replicas=1", "--set", "strategy.type=Recreate")
        api.helm("upgrade", "demo", CHART, *WHERE, *options, *one)
        assert strategy() == {"type": "Recreate"}
        api.helm("upgrade", "demo", CHART, *WHERE, *options)
        assert strategy()["type"] == "RollingUpdate"


async def _keep_a_lease(kubernetes: KubernetesClient) -> None:
    """Take, renew and release the Lease, with the rights of the chart, and no other one."""

    def lease(name: str, identity: str) -> Lease:
        return Lease(
            client,
            namespace="kafka",
            name=name,
            identity=identity,
            serves="resources without spec.clusterRef",
            duration_s=15,
            knowledge=ClusterKnowledge(ViewedPort()),
            now=lambda: datetime.now(UTC),
        )

    async with KubeClient(max_connections=1, request_timeout_s=60) as client:
        one, other = lease("demo-regent", "one"), lease("demo-regent", "other")
        assert await one.take(by_force=True)
        assert await one.take(by_force=False)
        assert not await other.take(by_force=False)
        assert await other.take(by_force=True)
        await other.release()
        with pytest.raises(KubeApiError, match="forbidden"):
            await lease("somebody-elses", "one").take(by_force=True)
    path = "/apis/coordination.k8s.io/v1/namespaces/kafka/leases/demo-regent"
    spec = kubernetes.get(path)["spec"]
    assert "holderIdentity" not in spec
    assert spec["leaseTransitions"] == 1
    kubernetes.delete(path)


async def _one_life(client: KubernetesClient, namespaces: tuple[str, ...]) -> None:
    """Create and delete a topic, with the rights of the chart."""
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        await _serve_one_life(client, controller, namespaces)
        assert cluster.topics == ()


async def _serve_one_life(
    client: KubernetesClient, controller: LiveController, namespaces: tuple[str, ...]
) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(
        run_kube(controller, KubeSettings(namespaces=namespaces), stop_event=stop)
    )
    try:
        example = yaml.safe_load((ROOT / "examples" / "kafkatopic.yaml").read_text())
        await asyncio.to_thread(client.apply, example, namespace="team-b")
        topic = KAFKA_TOPIC.kind.object_path("team-b", "orders")

        async def is_ready() -> bool:
            body = await asyncio.to_thread(client.get, topic)
            found = body.get("status", {}).get("conditions", [])
            return ("Ready", "True") in {(each["type"], each["status"]) for each in found}

        await wait_until_async(is_ready, describe="the topic to be ready")
        # Times in the API have whole seconds. A resource that is deleted in the second in which
        # its definition was created counts as one of a former definition, and its topic stays.
        definition = await asyncio.to_thread(client.get, f"{DEFINITIONS}/{NAME}")
        created_at = datetime.fromisoformat(definition["metadata"]["creationTimestamp"])
        await wait_until_async(
            lambda: datetime.now(UTC) - created_at > timedelta(seconds=1),
            describe="the second of the definition's creation to be over",
        )
        await asyncio.to_thread(client.delete, topic)

        async def left() -> list[dict[str, Any]]:
            collection = KAFKA_TOPIC.kind.collection_path("team-b")
            return await asyncio.to_thread(client.items, collection)

        await wait_until_async(left, until=lambda topics: not topics, describe="it to go")

        async def reasons() -> set[str]:
            events = await asyncio.to_thread(client.items, "/api/v1/namespaces/team-b/events")
            return {event["reason"] for event in events}

        await wait_until_async(
            reasons,
            until=lambda found: "TopicDeleted" in found,
            describe="the Events to be recorded",
        )
    finally:
        stop.set()
        await task
