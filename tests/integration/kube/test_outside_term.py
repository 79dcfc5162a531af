"""Custom resources while the Kafka cluster has no controller of Regent's."""

from __future__ import annotations

import pytest

from regent.model.active_regent import ServedResources
from regent.resources.kafka_topic import FINALIZER
from tests.integration.kube.conftest import Namespace, condition, supervised, topic
from tests.support.live_controller import CONTROLLER_ID, LiveController
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("kubeconfig")]


async def test_without_zookeeper_nothing_is_said_to_be_ready_and_people_can_let_go(
    namespace: Namespace, cluster: SimulatedCluster
) -> None:
    async with supervised(LiveController(cluster), [namespace.name]):
        namespace.apply(topic("orders"), topic("payments"))
        await namespace.wait_condition("orders", "Ready", "True")
        await namespace.wait_condition("payments", "Ready", "True")

        cluster.lose_zookeeper()
        body = await namespace.wait_condition("orders", "Ready", "Unknown", "ControllerInactive")
        assert condition(body, "Healthy")["status"] == "Unknown"
        assert condition(body, "Synced")["status"] == "Unknown"
        assert "no ZooKeeper session" in condition(body, "Ready")["message"]
        assert body["status"]["partitionSummary"] == "3/3"

        namespace.apply(topic("clicks"))
        await namespace.wait_condition("clicks", "Ready", "Unknown", "ControllerInactive")

        namespace.patch("payments", deletionPolicy="Retain")
        await namespace.delete_and_wait("payments")

        cluster.restore_zookeeper()
        for name in ("orders", "clicks"):
            await namespace.wait_condition(name, "Ready", "True")
    assert cluster.topics == ("clicks", "orders", "payments")


async def test_what_a_controller_with_another_lease_serves_is_left_to_it_even_if_it_does_not_answer(
    namespace: Namespace, cluster: SimulatedCluster
) -> None:
    """Nothing serves resources beside the one that leads, though it says that it serves these."""
    served = ServedResources(f"{namespace.name}/leader", (namespace.name,))
    observing = LiveController(cluster, controller_id=CONTROLLER_ID + 1, contends=False)
    held = topic("orders", deletionPolicy="Retain")
    held["metadata"]["finalizers"] = [FINALIZER]
    with LiveController(cluster, resources=served) as leader:
        async with supervised(observing, [namespace.name]):
            namespace.apply(held)
            body = await namespace.wait_condition("orders", "Ready", "Unknown", "NotAnswered")
            named = f"Regent replica {CONTROLLER_ID} with the Lease {namespace.name}/leader"
            assert named in condition(body, "Ready")["message"]

            namespace.delete("orders")
            body = await namespace.wait_condition("orders", "Ready", "Unknown", "NotAnswered")
            assert body["metadata"]["finalizers"] == [FINALIZER]

            leader.lose_term()
            await namespace.wait_gone("orders")
