"""Uninstalling the chart: KafkaTopics do not wait for a Regent that is gone.

No kubelet runs here. So the tests do what it would do with the hook's pod: run its container's
command as a process, with the token of its service account, and report its end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regent.kube.release import Deployment, ReleaseError, release
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kafka_topic import FINALIZER
from sandbox import KubernetesApi, wait_until
from sandbox.definitions import apply_definitions
from sandbox.process import Outcome
from sandbox.regent_process import run_regent
from tests.support.helm_chart import CHART, ROOT
from tests.support.kubernetes_client import KubernetesClient

pytestmark = pytest.mark.integration

OTHERS_FINALIZER = "example.com/other"
PODS = "/api/v1/namespaces/kafka/pods"


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi(controller_manager=True) as server:
        apply_definitions(server.kubectl, ROOT / "crds")
        yield server


@pytest.fixture(scope="module")
def client(api: KubernetesApi) -> KubernetesClient:
    return KubernetesClient(api)


@pytest.fixture(autouse=True)
def topics(client: KubernetesClient) -> Iterator[None]:
    """KafkaTopics as a Regent leaves them, in two namespaces."""
    for namespace in ("team-a", "team-b"):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        for name, finalizers in HELD.items():
            client.apply(
                {
                    "apiVersion": "kafka.regent.dev/v1alpha1",
                    "kind": "KafkaTopic",
                    "metadata": {"name": name, "namespace": namespace, "finalizers": finalizers},
                    "spec": {"partitions": 1, "replicas": 1},
                }
            )
    yield
    for namespace in ("team-a", "team-b"):
        for name, finalizers in finalizers_in(client, namespace).items():
            if finalizers:
                change_topic(client, namespace, name, {"metadata": {"finalizers": None}})
        client.delete(KAFKA_TOPIC.kind.collection_path(namespace))


def finalizers_in(client: KubernetesClient, namespace: str) -> dict[str, list[str]]:
    items = client.items(KAFKA_TOPIC.kind.collection_path(namespace))
    return {i["metadata"]["name"]: i["metadata"].get("finalizers", []) for i in items}


def change_topic(
    client: KubernetesClient, namespace: str, name: str, change: dict[str, Any]
) -> None:
    client.patch(KAFKA_TOPIC.kind.object_path(namespace, name), change)


HELD = {"owned": [FINALIZER], "shared": [FINALIZER, OTHERS_FINALIZER], "not-owned": []}
RELEASED = {"owned": [], "shared": [OTHERS_FINALIZER], "not-owned": []}


def regent(kubeconfig: Path, *arguments: str) -> Outcome:
    return run_regent(*arguments, KUBECONFIG=str(kubeconfig))


def test_release_takes_off_our_finalizer_and_no_other(
    api: KubernetesApi, client: KubernetesClient
) -> None:
    outcome = regent(api.kubeconfig, "release", "--all")
    assert outcome.exit_code == 0, outcome
    assert "released KafkaTopic team-a/owned\n" in outcome.stdout
    assert "4 of 6 KafkaTopics released; their topics stay in Kafka" in outcome.stdout
    assert finalizers_in(client, "team-a") == finalizers_in(client, "team-b") == RELEASED


def test_release_leaves_the_resources_of_another_regent_alone(
    api: KubernetesApi, client: KubernetesClient
) -> None:
    change_topic(client, "team-a", "owned", {"spec": {"clusterRef": {"name": "west"}}})
    default = regent(api.kubeconfig, "release", "--all", "-n", "team-a", "--default-cluster")
    assert default.exit_code == 0, default
    assert finalizers_in(client, "team-a") == {**RELEASED, "owned": [FINALIZER]}
    west = regent(api.kubeconfig, "release", "--all", "-n", "team-a", "--cluster-name=west")
    assert west.exit_code == 0, west
    assert finalizers_in(client, "team-a") == RELEASED


def test_resources_that_go_with_their_finalizer_are_counted(
    api: KubernetesApi, client: KubernetesClient
) -> None:
    client.delete(KAFKA_TOPIC.kind.object_path("team-b", "owned"))
    outcome = regent(api.kubeconfig, "release", "--all", "--namespace", "team-b")
    assert outcome.exit_code == 0, outcome
    assert "2 of 3 KafkaTopics released" in outcome.stdout
    assert finalizers_in(client, "team-b") == {"shared": [OTHERS_FINALIZER], "not-owned": []}


def test_a_dry_run_changes_nothing_and_says_what_would_be_done(
    api: KubernetesApi, client: KubernetesClient
) -> None:
    outcome = regent(api.kubeconfig, "release", "--all", "--dry-run", "--deployment", "no/such")
    assert outcome.exit_code == 0, outcome
    assert "would release KafkaTopic team-a/shared\n" in outcome.stdout
    assert "4 of 6 KafkaTopics would be released" in outcome.stdout
    assert finalizers_in(client, "team-a") == finalizers_in(client, "team-b") == HELD


def test_release_without_all_says_what_to_say(api: KubernetesApi, client: KubernetesClient) -> None:
    outcome = regent(api.kubeconfig, "release")
    assert outcome.exit_code == 2
    assert "--all" in outcome.stderr
    assert finalizers_in(client, "team-a") == HELD


@pytest.mark.parametrize("deployment", [None, Deployment("team-a", "mistyped")])
async def test_a_regent_that_still_runs_is_noticed(
    api: KubernetesApi,
    client: KubernetesClient,
    monkeypatch: pytest.MonkeyPatch,
    deployment: Deployment | None,
) -> None:
    """However long it takes to put the finalizers back, within the time that it is given."""
    monkeypatch.setattr("regent.kube.release._PUT_BACK_WITHIN_S", 60.0)
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    running: list[asyncio.Task[None]] = []

    def put_back() -> None:
        change_topic(client, "team-a", "owned", {"metadata": {"finalizers": [FINALIZER]}})

    def report(line: str) -> None:
        if line.endswith("their topics stay in Kafka"):
            running.append(asyncio.create_task(asyncio.to_thread(put_back)))

    with pytest.raises(ReleaseError, match="team-a/owned: a Regent still runs"):
        await release(namespaces=("team-a",), deployment=deployment, dry_run=False, report=report)
    await asyncio.gather(*running)


async def test_what_another_regent_serves_too_is_left_to_it(
    api: KubernetesApi, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The own one is stopped: who puts finalizers back is another one, which goes on."""
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    stopped = ("create", "deployment", "regent", "--image=regent", "--replicas=0")
    api.kubectl("-n", "team-a", *stopped)
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if line.endswith("their topics stay in Kafka"):
            change_topic(client, "team-a", "owned", {"metadata": {"finalizers": [FINALIZER]}})

    deployment = Deployment("team-a", "regent")
    await release(namespaces=("team-a",), deployment=deployment, dry_run=False, report=report)
    assert lines[-1].endswith(
        "for instance KafkaTopic team-a/owned: another Regent, which still runs, serves them, too"
    )


@pytest.mark.parametrize("namespaces", [[], ["team-b", "gone"]], ids=["cluster", "namespaces"])
def test_uninstalling_stops_regent_and_releases_what_it_served(
    api: KubernetesApi, client: KubernetesClient, namespaces: list[str], tmp_path: Path
) -> None:
    api.kubectl("create", "namespace", "gone")
    api.helm(
        "install", "demo", CHART, "--namespace", "kafka", "--create-namespace",
        "--set", "zookeeper=zk:2181", "--set-json", f"namespaces={json.dumps(namespaces)}",
    )  # fmt: skip
    wait_until(lambda: pods_of(client, "regent"), describe="the pod of Regent")
    api.kubectl("delete", "namespace", "gone")
    with ThreadPoolExecutor(1) as pool:
        uninstalling = pool.submit(api.helm, "uninstall", "demo", "--namespace", "kafka")
        pod = wait_until(lambda: pods_of(client, "regent-release"), describe="the hook's pod")[0]
        outcome = run_hook(api, pod, tmp_path)
        assert outcome.exit_code == 0, outcome
        assert pods_of(client, "regent") == []
        client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})
        uninstalling.result()
    assert finalizers_in(client, "team-a") == (HELD if namespaces else RELEASED)
    assert finalizers_in(client, "team-b") == RELEASED
    kinds = "deploy,job,sa,role,rolebinding,clusterrole,clusterrolebinding"
    assert "demo-regent" not in api.kubectl("get", kinds, "-A", "-o", "name")


def pods_of(client: KubernetesClient, name: str) -> list[dict[str, Any]]:
    """Return the pods with this value of the label of names."""
    return client.items(f"{PODS}?labelSelector=app.kubernetes.io/name={name}")


def run_hook(api: KubernetesApi, pod: dict[str, Any], directory: Path) -> Outcome:
    """The container's command, with the rights of the pod."""
    account = pod["spec"]["serviceAccountName"]
    token = api.kubectl("-n", "kafka", "create", "token", account).strip()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(api.kubeconfig.read_text().replace(api.token, token))
    (container,) = pod["spec"]["containers"]
    return regent(kubeconfig, *container["args"])
