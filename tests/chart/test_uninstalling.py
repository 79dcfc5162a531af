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
import yaml

from regent.kube.release import Deployment, ReleaseError, release
from regent.resources.kafka_topic import FINALIZER
from sandbox import KubernetesApi, wait_until
from sandbox.definitions import apply_definitions
from sandbox.process import Outcome
from sandbox.regent_process import run_regent

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "regent"
OTHERS_FINALIZER = "example.com/other"


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi(controller_manager=True) as server:
        apply_definitions(server.kubectl, ROOT / "crds")
        yield server


@pytest.fixture(autouse=True)
def topics(api: KubernetesApi) -> Iterator[None]:
    """KafkaTopics as a Regent leaves them, in two namespaces."""
    documents: list[dict[str, Any]] = []
    for namespace in ("team-a", "team-b"):
        documents.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        documents.extend(
            {
                "apiVersion": "kafka.regent.dev/v1alpha1",
                "kind": "KafkaTopic",
                "metadata": {"name": name, "namespace": namespace, "finalizers": finalizers},
                "spec": {"partitions": 1, "replicas": 1},
            }
            for name, finalizers in (
                ("owned", [FINALIZER]),
                ("shared", [FINALIZER, OTHERS_FINALIZER]),
                ("not-owned", []),
            )
        )
    api.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))
    yield
    for namespace in ("team-a", "team-b"):
        for name in finalizers_in(api, namespace):
            api.kubectl(
                *("-n", namespace, "patch", "ktopic", name, "--type=merge"),
                *("-p", '{"metadata":{"finalizers":null}}'),
            )
        api.kubectl("-n", namespace, "delete", "ktopic", "--all")


def finalizers_in(api: KubernetesApi, namespace: str) -> dict[str, list[str]]:
    items = json.loads(api.kubectl("-n", namespace, "get", "ktopic", "-o", "json"))["items"]
    return {i["metadata"]["name"]: i["metadata"].get("finalizers", []) for i in items}


HELD = {"owned": [FINALIZER], "shared": [FINALIZER, OTHERS_FINALIZER], "not-owned": []}
RELEASED = {"owned": [], "shared": [OTHERS_FINALIZER], "not-owned": []}


def regent(kubeconfig: Path, *arguments: str) -> Outcome:
    return run_regent(*arguments, KUBECONFIG=str(kubeconfig))


def test_release_takes_off_our_finalizer_and_no_other(api: KubernetesApi) -> None:
    outcome = regent(api.kubeconfig, "release", "--all")
    assert outcome.exit_code == 0, outcome
    assert "released KafkaTopic team-a/owned\n" in outcome.stdout
    assert "4 of 6 KafkaTopics released; their topics stay in Kafka" in outcome.stdout
    assert finalizers_in(api, "team-a") == finalizers_in(api, "team-b") == RELEASED


def test_release_leaves_the_resources_of_another_regent_alone(api: KubernetesApi) -> None:
    api.kubectl(
        *("-n", "team-a", "patch", "ktopic", "owned", "--type=merge"),
        *("-p", '{"spec":{"clusterRef":{"name":"west"}}}'),
    )
    default = regent(api.kubeconfig, "release", "--all", "-n", "team-a", "--default-cluster")
    assert default.exit_code == 0, default
    assert finalizers_in(api, "team-a") == {**RELEASED, "owned": [FINALIZER]}
    west = regent(api.kubeconfig, "release", "--all", "-n", "team-a", "--cluster-name=west")
    assert west.exit_code == 0, west
    assert finalizers_in(api, "team-a") == RELEASED


def test_release_can_be_restricted_to_namespaces(api: KubernetesApi) -> None:
    outcome = regent(api.kubeconfig, "release", "--all", "--namespace", "team-b")
    assert outcome.exit_code == 0, outcome
    assert finalizers_in(api, "team-a") == HELD
    assert finalizers_in(api, "team-b") == RELEASED


def test_resources_that_go_with_their_finalizer_are_counted(api: KubernetesApi) -> None:
    api.kubectl("-n", "team-b", "delete", "ktopic", "owned", "--wait=false")
    outcome = regent(api.kubeconfig, "release", "--all", "--namespace", "team-b")
    assert outcome.exit_code == 0, outcome
    assert "2 of 3 KafkaTopics released" in outcome.stdout
    assert finalizers_in(api, "team-b") == {"shared": [OTHERS_FINALIZER], "not-owned": []}


def test_a_dry_run_changes_nothing_and_says_what_would_be_done(api: KubernetesApi) -> None:
    outcome = regent(api.kubeconfig, "release", "--all", "--dry-run", "--deployment", "no/such")
    assert outcome.exit_code == 0, outcome
    assert "would release KafkaTopic team-a/shared\n" in outcome.stdout
    assert "4 of 6 KafkaTopics would be released" in outcome.stdout
    assert finalizers_in(api, "team-a") == finalizers_in(api, "team-b") == HELD


def test_release_without_all_says_what_to_say(api: KubernetesApi) -> None:
    outcome = regent(api.kubeconfig, "release")
    assert outcome.exit_code == 2
    assert "--all" in outcome.stderr
    assert finalizers_in(api, "team-a") == HELD


@pytest.mark.parametrize("deployment", [None, Deployment("team-a", "mistyped")])
async def test_a_regent_that_still_runs_is_noticed(
    api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, deployment: Deployment | None
) -> None:
    """However long it takes to put the finalizers back, within the time that it is given."""
    monkeypatch.setattr("regent.kube.release._PUT_BACK_WITHIN_S", 60.0)
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    running: list[asyncio.Task[str]] = []

    def put_back() -> str:
        patch = json.dumps({"metadata": {"finalizers": [FINALIZER]}})
        return api.kubectl(
            *("-n", "team-a", "patch", "ktopic", "owned", "--type=merge", "-p", patch)
        )

    def report(line: str) -> None:
        if line.endswith("their topics stay in Kafka"):
            running.append(asyncio.create_task(asyncio.to_thread(put_back)))

    with pytest.raises(ReleaseError, match="team-a/owned: a Regent still runs"):
        await release(namespaces=("team-a",), deployment=deployment, dry_run=False, report=report)
    await asyncio.gather(*running)


async def test_what_another_regent_serves_too_is_left_to_it(
    api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
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
            patch = json.dumps({"metadata": {"finalizers": [FINALIZER]}})
            api.kubectl(*("-n", "team-a", "patch", "ktopic", "owned", "--type=merge", "-p", patch))

    deployment = Deployment("team-a", "regent")
    await release(namespaces=("team-a",), deployment=deployment, dry_run=False, report=report)
    assert lines[-1].endswith(
        "for instance KafkaTopic team-a/owned: another Regent, which still runs, serves them, too"
    )


@pytest.mark.parametrize("namespaces", [[], ["team-b", "gone"]], ids=["cluster", "namespaces"])
def test_uninstalling_stops_regent_and_releases_what_it_served(
    api: KubernetesApi, namespaces: list[str], tmp_path: Path
) -> None:
    api.kubectl("create", "namespace", "gone")
    api.helm(
        "install", "demo", CHART, "--namespace", "kafka", "--create-namespace",
        "--set", "zookeeper=zk:2181", "--set-json", f"namespaces={json.dumps(namespaces)}",
    )  # fmt: skip
    regent_pods = (
        "-n",
        "kafka",
        "get",
        "pods",
        "-l",
        "app.kubernetes.io/name=regent",
        "-o",
        "name",
    )
    wait_until(lambda: api.kubectl(*regent_pods), describe="the pod of Regent", timeout_s=60)
    api.kubectl("delete", "namespace", "gone")
    with ThreadPoolExecutor(1) as pool:
        uninstalling = pool.submit(api.helm, "uninstall", "demo", "--namespace", "kafka")
        pod = wait_until(lambda: hook_pod(api), describe="the hook's pod", timeout_s=180)
        outcome = run_hook(api, pod, tmp_path)
        assert outcome.exit_code == 0, outcome
        assert api.kubectl(*regent_pods) == ""
        api.kubectl(
            *("-n", "kafka", "patch", "pod", pod["metadata"]["name"], "--subresource=status"),
            *("--type=merge", "-p", '{"status":{"phase":"Succeeded"}}'),
        )
        uninstalling.result()
    assert finalizers_in(api, "team-a") == (HELD if namespaces else RELEASED)
    assert finalizers_in(api, "team-b") == RELEASED
    kinds = "deploy,job,sa,role,rolebinding,clusterrole,clusterrolebinding"
    assert "demo-regent" not in api.kubectl("get", kinds, "-A", "-o", "name")


def hook_pod(api: KubernetesApi) -> dict[str, Any] | None:
    selector = "app.kubernetes.io/name=regent-release"
    pods = json.loads(api.kubectl("-n", "kafka", "get", "pods", "-l", selector, "-o", "json"))
    return next(iter(pods["items"]), None)


def run_hook(api: KubernetesApi, pod: dict[str, Any], directory: Path) -> Outcome:
    """The container's command, with the rights of the pod."""
    account = pod["spec"]["serviceAccountName"]
    token = api.kubectl("-n", "kafka", "create", "token", account).strip()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(api.kubeconfig.read_text().replace(api.token, token))
    (container,) = pod["spec"]["containers"]
    return regent(kubeconfig, *container["args"])
