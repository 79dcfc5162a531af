"""The demo with KUBECONFIG: the user's cluster is as before afterwards, or never touched."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import KubernetesApi, ZooKeeper, wait_until
from sandbox.definitions import apply_definitions
from sandbox.demo_kubernetes import borrowed_cluster
from sandbox.errors import CommandError
from sandbox.regent_process import RegentProcess
from tests.e2e.test_demo import Demo
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("demo")]

CRDS = Path(__file__).resolve().parents[2] / "crds"
DEFINITION = "kafkatopics.kafka.regent.dev"


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    """The user's cluster; without any definitions when the test begins."""
    with KubernetesApi(controller_manager=True) as server:
        yield server


@pytest.fixture
def used(api: KubernetesApi) -> KubernetesApi:
    """With topics that are none of the demo's business, one of them called as the demo's."""
    apply_definitions(api.kubectl, CRDS)
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    topics = (topic("default", "orders"), topic("team-a", "payments"))
    api.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([team, *topics]))
    return api


def topic(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"partitions": 1, "replicas": 1},
    }


def listed(api: KubernetesApi, kind: str) -> dict[str, str]:
    """Namespace and name of every object -> its version."""
    items = json.loads(api.kubectl("get", kind, "-A", "-o", "json"))["items"]
    return {
        f"{i['metadata'].get('namespace', '')}/{i['metadata']['name']}": i["metadata"][
            "resourceVersion"
        ]
        for i in items
    }


def others(api: KubernetesApi) -> dict[str, str]:
    """What Regent could write to outside the demo's namespace, with its versions."""
    found = listed(api, "ktopic") | listed(api, "crd") | listed(api, "lease")
    # The servers of the cluster keep Leases of their own.
    excepted = ("regent-demo-", "kube-system/")
    return {name: version for name, version in found.items() if not name.startswith(excepted)}


def run(directory: Path, api: KubernetesApi) -> Demo:
    demo = Demo(directory, "--once", kubeconfig=api.kubeconfig)
    try:
        demo.wait()
    finally:
        demo.kill()
    return demo


def assert_refused(demo: Demo, message: str) -> None:
    assert demo.process.returncode == 1, demo.output
    assert message in demo.output
    assert "unset KUBECONFIG" in demo.output
    assert "Traceback" not in demo.output


def wait_for_namespaces(api: KubernetesApi, before: dict[str, str]) -> None:
    wait_until(
        lambda: listed(api, "namespaces").keys(),
        until=lambda left: left == before.keys(),
        describe="the namespace of the demo to be gone",
    )


def test_nothing_of_others_is_touched_and_everything_of_the_demo_is_removed(
    used: KubernetesApi, tmp_path: Path
) -> None:
    namespaces = listed(used, "namespaces")
    before = others(used)
    demo = run(tmp_path, used)
    assert demo.process.returncode == 0, demo.output
    assert "1000 messages consumed" in demo.output
    assert others(used) == before
    wait_for_namespaces(used, namespaces)


def wait_until_clean(api: KubernetesApi, namespaces: dict[str, str]) -> None:
    wait_for_namespaces(api, namespaces)
    wait_until(
        lambda: listed(api, "crd"),
        until=lambda left: not left,
        describe="the definitions of the demo to be gone",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_stopped_at_its_beginning_leaves_nothing(
    api: KubernetesApi, tmp_path: Path, number: signal.Signals
) -> None:
    namespaces = listed(api, "namespaces")
    demo = Demo(tmp_path, "--once", kubeconfig=api.kubeconfig)
    try:
        wait_until(
            lambda: listed(api, "namespaces").keys() - namespaces.keys(),
            describe="the namespace of the demo",
            interval_s=0.01,
        )
        os.killpg(demo.process.pid, number)
        assert demo.wait() == 0, demo.output
    finally:
        demo.kill()
    assert demo.output.endswith("stopped\n")
    wait_until_clean(api, namespaces)


def test_definitions_go_with_the_last_of_several_demos(api: KubernetesApi) -> None:
    namespaces = listed(api, "namespaces")
    with ExitStack() as second:
        with ExitStack() as first:
            borrowed_cluster(first, str(api.kubeconfig))
            served = borrowed_cluster(second, str(api.kubeconfig))
            served("delete", "ktopic", "--all")  # as a demo does before its Regent starts
        assert DEFINITION in {name.removeprefix("/") for name in listed(api, "crd")}
    wait_until_clean(api, namespaces)


def test_without_the_right_to_remove_it_nothing_is_created(tmp_path: Path) -> None:
    with KubernetesApi(users={"guest": ["guests"]}) as api:
        verbs = ["get", "list", "create", "update"]
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "guests"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}],
        }
        api.kubectl("apply", "-f", "-", stdin=json.dumps(role))
        api.kubectl("create", "clusterrolebinding", "g", "--clusterrole=guests", "--group=guests")
        before = (listed(api, "crd"), listed(api, "namespaces"))
        kubeconfig = str(api.kubeconfig_for("guest"))
        with ExitStack() as stack, pytest.raises(CommandError, match="no right to delete names"):
            borrowed_cluster(stack, kubeconfig)
        assert (listed(api, "crd"), listed(api, "namespaces")) == before


def test_another_version_of_the_definitions_is_not_overwritten(
    used: KubernetesApi, tmp_path: Path
) -> None:
    addition = {"op": "add", "path": "/spec/names/shortNames/-", "value": "kt"}
    used.kubectl("patch", "crd", DEFINITION, "--type=json", "-p", json.dumps([addition]))
    wait_until(lambda: used.kubectl("get", "kt", "-A"), describe="the new short name")
    before = (listed(used, "crd"), listed(used, "namespaces"), listed(used, "ktopic"))
    assert_refused(
        run(tmp_path, used), f"another version of the CustomResourceDefinition {DEFINITION}"
    )
    assert (listed(used, "crd"), listed(used, "namespaces"), listed(used, "ktopic")) == before


def test_an_installed_regent_is_left_alone(used: KubernetesApi, tmp_path: Path) -> None:
    used.kubectl("-n", "team-a", "create", "deployment", "mine", "--image=regent")
    used.kubectl("-n", "team-a", "label", "deployment/mine", "app.kubernetes.io/name=regent")
    before = listed(used, "namespaces")
    assert_refused(run(tmp_path, used), "a Regent is installed in this Kubernetes cluster")
    assert listed(used, "namespaces") == before


def test_a_regent_that_serves_all_namespaces_is_noticed(
    used: KubernetesApi, tmp_path: Path
) -> None:
    namespaces = listed(used, "namespaces")
    with (
        ZooKeeper() as zookeeper,
        RegentProcess(
            zookeeper=zookeeper.connect_string,
            kubeconfig=used.kubeconfig,
            settings={"missing_cluster": "create"},
        ) as other,
    ):
        other.wait_until_active()
        assert_refused(run(tmp_path, used), "a Regent serves all namespaces")
        assert "default/orders" in listed(used, "ktopic")
    wait_for_namespaces(used, namespaces)
