"""The API server goes back to an earlier state: a backup of etcd is restored under Regent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import KubernetesApi
from sandbox.definitions import apply_definitions
from tests.integration.kube.conftest import ROOT, Namespace, running, topic
from tests.support.live_controller import LiveController

pytestmark = pytest.mark.integration


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "kubernetes"


@pytest.fixture
def api(state: Path) -> Iterator[KubernetesApi]:
    """An API server of the test's own, whose store can be exchanged."""
    with KubernetesApi(state=state) as server:
        apply_definitions(server.kubectl, ROOT / "crds")
        yield server


def stop(api: KubernetesApi) -> None:
    """At once: an orderly stop of the API server waits for the watches that are open."""
    api.api_server.kill()
    api.etcd.stop()


async def test_resources_are_served_again_after_a_backup_was_restored(
    api: KubernetesApi,
    namespace: Namespace,
    controller: LiveController,
    kubeconfig: None,
    state: Path,
    tmp_path: Path,
) -> None:
    data, backup = state / "etcd-data", tmp_path / "backup"
    async with running(controller, namespace, check_interval_s=0.5):
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        stop(api)
        shutil.copytree(data, backup)
        api.start()
        namespace.apply(topic("later"))
        await namespace.wait_condition("later", "Ready", "True")
        for partitions in range(4, 14):
            namespace.patch("orders", partitions=partitions)
        await namespace.wait_condition("orders", "Ready", "True")

        stop(api)
        shutil.rmtree(data)
        shutil.copytree(backup, data)
        api.start()
        namespace.patch("orders", partitions=14)
        await namespace.wait_condition("orders", "Ready", "True")
    assert len(controller.view.topics["orders"].partitions) == 14
    assert "later" in controller.view.topics


async def test_a_backup_is_noticed_even_if_versions_have_caught_up_before_anybody_looks(
    api: KubernetesApi,
    namespace: Namespace,
    controller: LiveController,
    kubeconfig: None,
    state: Path,
    tmp_path: Path,
) -> None:
    data, backup = state / "etcd-data", tmp_path / "backup"
    async with running(controller, namespace, check_interval_s=0.5) as operator:
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        stop(api)
        shutil.copytree(data, backup)
        api.start()
        namespace.patch("orders", partitions=5)
        await namespace.wait_condition("orders", "Ready", "True")
        newest = operator.kafka_topics.cache.newest_version

        stop(api)
        shutil.rmtree(data)
        shutil.copytree(backup, data)
        api.advance_store(newest + 100)
        api.start()
        # What the resource says now, and not what was known of it, decides.
        body = await namespace.wait_condition("orders", "Stalled", "True", "PartitionsDecrease")
        assert body["spec"]["partitions"] == 3
