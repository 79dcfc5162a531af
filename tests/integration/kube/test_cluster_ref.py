"""Two Regents of two Kafka clusters serve the same namespace, each its own resources."""

from __future__ import annotations

from typing import Any

import pytest

from regent.reconcile.selection import ClusterSelection
from sandbox.errors import CommandError
from tests.integration.kube.conftest import (
    Namespace,
    is_reconciled,
    running,
    topic,
    wait_for,
)
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.integration

EAST = ClusterSelection(name="east", is_default=True)
WEST = ClusterSelection(name="west")


def topics_of(controller: LiveController) -> set[str]:
    return set(controller.view.topics)


def resource(name: str, cluster: str, **spec: Any) -> dict[str, Any]:
    return topic(name, clusterRef={"name": cluster}, **spec)


async def test_each_serves_the_resources_that_name_its_cluster(
    namespace: Namespace, controller: LiveController, kubeconfig: None
) -> None:
    with SimulatedCluster() as other, LiveController(other) as second:
        async with (
            running(controller, namespace, selection=EAST) as east,
            running(second, namespace, selection=WEST) as west,
        ):
            namespace.apply(
                resource("of-east", "east", topicName="orders"),
                resource("of-west", "west", topicName="orders", partitions=1),
                resource("of-nobody", "north"),
                topic("unnamed"),
            )
            for name in ("of-east", "of-west", "unnamed"):
                await namespace.wait_condition(name, "Ready", "True")
            assert topics_of(controller) == {"orders", "unnamed"}
            assert topics_of(second) == {"orders"}
            assert len(second.view.topics["orders"].partitions) == 1
            assert not is_reconciled(namespace.get("of-nobody"))

            # One that names a cluster later is that cluster's from then on. What its status says of
            # ownership is of the other cluster: nothing is created before somebody says so.
            writes = east.writes
            namespace.patch("unnamed", clusterRef={"name": "west"})
            await namespace.wait_condition("unnamed", "Stalled", "True")
            assert topics_of(controller) == {"orders", "unnamed"}
            assert topics_of(second) == {"orders"}
            assert east.writes == writes
            assert len(west.kafka_topics.cache) == 2

            await namespace.delete_and_wait("of-west")
            await wait_for(
                lambda: topics_of(second) == set(), describe="the topic in west to be gone"
            )
            assert topics_of(controller) == {"orders", "unnamed"}


def test_the_reference_is_immutable_once_it_is_set(namespace: Namespace) -> None:
    namespace.apply(topic("orders"))
    namespace.patch("orders", clusterRef={"name": "east"})
    for changed in ({"name": "west"}, None):
        with pytest.raises(CommandError, match="clusterRef is immutable once it is set"):
            namespace.patch("orders", clusterRef=changed)
    namespace.patch("orders", partitions=4)
    with pytest.raises(CommandError, match=r"spec\.clusterRef\.name"):
        namespace.apply(topic("others", clusterRef={"name": "East!"}))
