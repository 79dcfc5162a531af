"""The chart, rendered; and an API server for the folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox import KubernetesApi
from tests.support.definitions import remove_definitions
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
    remove_definitions(api)
    yield api
    remove_definitions(api)


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
