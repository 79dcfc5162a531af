"""The chart, rendered; and an API server for the folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from regent.resources.crd import RESOURCES
from regent.resources.kind import ALL_NAMESPACES, ResourceKind
from sandbox import KubernetesApi, wait_until
from tests.support.helm_chart import CHART, Render, render_chart
from tests.support.kubernetes_client import KubernetesClient


@pytest.fixture(scope="session")
def render() -> Render:
    """Render the chart with values; the objects by kind and name."""
    return render_chart


@pytest.fixture(scope="package")
def api() -> Iterator[KubernetesApi]:
    """An API server without controllers, and a user without rights."""
    with KubernetesApi(users={"regent": []}) as server:
        yield server


@pytest.fixture
def bare_api(api: KubernetesApi) -> Iterator[KubernetesApi]:
    """The API server without Regent's definitions."""
    client = KubernetesClient(api)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def present() -> list[ResourceKind]:
        names = {body["metadata"]["name"] for body in client.items(definitions)}
        return [resource.kind for resource in RESOURCES if resource.kind.crd_name in names]

    def remove() -> None:
        for kind in present():
            # The API server opens the storage of a kind at the first request. If the deletion makes
            # this request, it fails, and the next attempt can be five minutes later.
            client.items(kind.collection_path(ALL_NAMESPACES))
            client.delete(f"{definitions}/{kind.crd_name}")
        wait_until(
            present,
            until=lambda left: not left,
            describe="Regent's definitions to be gone",
        )

    remove()
    yield api
    remove()


@contextmanager
def installed(api: KubernetesApi, *options: str, namespace: str = "kafka") -> Iterator[str]:
    """Install a release of the chart; yield the printed notes. No pod runs, so no hook ends."""
    where = ("--namespace", namespace)
    given = ("--create-namespace", "--set", "zookeeper=zk:2181", *options)
    notes = api.helm("install", "demo", CHART, *where, *given)
    try:
        yield notes
    finally:
        api.helm("uninstall", "demo", *where, "--no-hooks")


def give_to_user(
    api: KubernetesApi, bindings: Sequence[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Bind the chart's roles to a user with a token, and make this user that of the process: no
    token controller runs here."""
    subjects = [{"kind": "User", "name": "regent", "apiGroup": "rbac.authorization.k8s.io"}]
    for binding in bindings:
        path = f"/apis/rbac.authorization.k8s.io/v1/{binding}"
        KubernetesClient(api).patch(path, {"subjects": subjects})
    config = folder / "kubeconfig"
    config.write_text(api.kubeconfig_for("regent").read_text())
    monkeypatch.setenv("KUBECONFIG", str(config))
