"""The Lease by which replicas agree on who serves resources, while there is much to be written."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from regent.kube.health import KubeHealth
from regent.kube.health_metrics import KubeHealthCollector
from sandbox import KubernetesApi, wait_until_async
from tests.integration.kube.conftest import Namespace, grant, supervised, topic, wait_for
from tests.support.kubernetes_proxy import KubernetesProxy
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.integration


async def test_the_lease_is_renewed_while_writes_wait_for_a_slow_api_server(
    namespace: Namespace, cluster: SimulatedCluster, proxy: KubernetesProxy
) -> None:
    """Else another replica took it, and said that there is no controller."""
    lease = ("get", "lease", "regent", "-o", "jsonpath={.spec.renewTime}")

    async def renewed_at() -> str:
        return await asyncio.to_thread(namespace.kubectl, *lease)

    async with supervised(LiveController(cluster), [namespace.name], max_connections=2):
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        proxy.hold_writes()
        namespace.apply(*(topic(f"topic-{number}") for number in range(4)))
        await proxy.wait_for_held(2)
        before = await renewed_at()
        await wait_until_async(
            renewed_at,
            until=lambda now: now != before,
            describe="the Lease to be renewed",
        )
        proxy.release_writes()
        await namespace.wait_condition("topic-0", "Ready", "True")


@pytest.mark.usefixtures("limited")
async def test_a_right_on_the_lease_that_is_missing_shows_while_the_cluster_is_served(
    api: KubernetesApi, namespace: Namespace, cluster: SimulatedCluster
) -> None:
    """Without a controller statuses stay as they are then, and cannot say so."""
    grant(api, namespace.name, "list", "watch", lease=False)
    async with supervised(LiveController(cluster), [namespace.name]) as health:
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        await wait_for(lambda: health.unkept_lease is not None, describe="the Lease to be named")
        remark = health.remark() or ""
        assert 'cannot get resource "leases"' in remark
        assert "statuses stay as they are while there is no controller" in remark
        assert health.status()["unkeptLease"] == remark
        assert _unkept(health) == 1

        grant(api, namespace.name, "list", "watch")
        await wait_for(lambda: health.remark() is None, describe="no remark any more")
        assert _unkept(health) == 0


def _unkept(health: KubeHealth) -> float | None:
    registry = CollectorRegistry()
    registry.register(KubeHealthCollector(health))
    return registry.get_sample_value("regent_lease_unkept")
