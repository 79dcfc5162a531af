"""A real Kubernetes API: kubectl, RBAC, restarts, helm."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import KubernetesApi, wait_until
from sandbox.errors import CommandError

pytestmark = pytest.mark.integration

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {key: value}\n"
READ_CONFIG_MAPS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}]
"""


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi(
        users={"eve": [], "reader": ["readers", "others"]}, controller_manager=True
    ) as started:
        yield started


def test_kubectl_works_and_versions_are_what_was_built(api: KubernetesApi) -> None:
    version = api.kubectl("version")
    assert version.count("v1.34.4") == 2
    assert "default" in api.kubectl("get", "namespaces", "-o", "name")
    assert api.helm("version", "--short").startswith("v3.19.4")


def test_a_token_user_has_no_rights_but_what_rbac_gives(api: KubernetesApi) -> None:
    with pytest.raises(CommandError, match=r'User "eve" cannot list resource "configmaps"'):
        api.kubectl("get", "configmaps", user="eve")
    api.kubectl("apply", "-f", "-", stdin=READ_CONFIG_MAPS)
    wait_until(
        lambda: api.kubectl("get", "configmaps", user="reader") or "no objects",
        timeout_s=60,
        describe="the role binding to be known",
    )
    with pytest.raises(CommandError, match="Forbidden"):
        api.kubectl("delete", "configmaps", "--all", user="reader")


def test_the_stock_controllers_run_when_they_are_asked_for(api: KubernetesApi) -> None:
    wait_until(
        lambda: api.kubectl("get", "serviceaccount", "default"),
        timeout_s=60,
        describe="the default service account",
        watch=api.processes,
    )


def test_a_kubeconfig_is_not_written_again_while_others_may_read_it(api: KubernetesApi) -> None:
    before = api.kubeconfig.stat()
    assert api.kubeconfig_for("admin") == api.kubeconfig
    after = api.kubeconfig.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert after.st_mode & 0o777 == 0o600


def test_objects_survive_the_death_of_both_processes(api: KubernetesApi) -> None:
    api.kubectl("apply", "-f", "-", stdin=CONFIG_MAP)
    api.api_server.kill()
    with pytest.raises(CommandError):
        api.kubectl("get", "configmap", "kept")
    api.start()
    assert "value" in api.kubectl("get", "configmap", "kept", "-o", "yaml")
    api.restart()
    assert "value" in api.kubectl("get", "configmap", "kept", "-o", "yaml")


def test_a_kubeconfig_is_complete_in_itself(api: KubernetesApi, tmp_path: Path) -> None:
    elsewhere = tmp_path / "config"
    elsewhere.write_bytes(api.kubeconfig.read_bytes())
    assert "certificate-authority-data" in elsewhere.read_text()
    assert api.kubectl("--kubeconfig", elsewhere, "auth", "whoami", "-o", "name") is not None
    assert elsewhere.stat().st_size > 0
    assert api.kubeconfig.stat().st_mode & 0o077 == 0


def test_helm_renders_a_chart(api: KubernetesApi, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: probe\nversion: 0.1.0\n")
    (tmp_path / "templates" / "map.yaml").write_text(
        CONFIG_MAP.replace("value", "{{ .Release.Name }}")
    )
    assert "key: given" in api.helm("template", "given", tmp_path)
