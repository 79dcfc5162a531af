"""The Lease by which replicas agree on who serves resources, while there is much to be written."""

from __future__ import annotations

import asyncio

import pytest

from sandbox import wait_until_async
from tests.integration.kube.conftest import Namespace, supervised, topic
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
            timeout_s=120,
        )
        proxy.release_writes()
        await namespace.wait_condition("topic-0", "Ready", "True")
