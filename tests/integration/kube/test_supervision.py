"""Defects of the Kubernetes side, and namespaces that it may not read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from regent.admin.commands import CreateTopic, Outcome
from regent.controller.commands import Command
from regent.model.topic import topic_id_to_text
from sandbox import KubernetesApi
from tests.integration.kube.conftest import (
    Namespace,
    grant,
    is_reconciled,
    supervised,
    topic,
    wait_for,
)
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.integration


class ForgetfulController(LiveController):
    """Leaves out the last outcome of the first submissions: a broken promise of the port."""

    forgets = 2

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        outcomes = await super().submit(commands)
        if not self.forgets:
            return outcomes
        self.forgets -= 1
        return outcomes[:-1]


@pytest.mark.usefixtures("kubeconfig")
async def test_a_defect_restarts_the_kubernetes_side_and_the_controller_goes_on(
    namespace: Namespace, cluster: SimulatedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    controller = ForgetfulController(cluster)
    async with supervised(controller, [namespace.name]) as health:
        epoch = controller.view.controller_epoch
        namespace.apply(topic("orders"))
        await namespace.wait_condition("orders", "Ready", "True")
        assert health.restarts == 2
        assert "zip() argument" in (health.problem() or "")
        assert "Traceback" in caplog.text
        assert controller.view.controller_epoch == epoch
        assert not controller.service.has_ended


@pytest.mark.usefixtures("limited")
async def test_a_namespace_that_may_not_be_read_keeps_no_other_from_being_served(
    api: KubernetesApi, namespace: Namespace, cluster: SimulatedCluster
) -> None:
    closed, missing = Namespace(api, f"{namespace.name}-closed"), f"{namespace.name}-missing"
    closed.client.create("/api/v1/namespaces", {"metadata": {"name": closed.name}})
    grant(api, namespace.name, "list", "watch")
    grant(api, closed.name, "list")
    namespaces = [namespace.name, closed.name, missing]
    namespace.apply(topic("orders", deletionPolicy="Retain"))
    closed.apply(topic("payments", deletionPolicy="Retain"))
    async with supervised(LiveController(cluster), namespaces) as health:
        await namespace.wait_condition("orders", "Ready", "True")
        assert not is_reconciled(closed.get("payments"))
        right = "kafkatopics.kafka.regent.dev in namespace"
        remarks = (
            f"missing right: watch {right} {closed.name};",
            "missing right: list kafkatopics.kafka.regent.dev, "
            f"watch {right} {missing}; create the namespace",
        )
        await wait_for(
            lambda: all(remark in (health.remark() or "") for remark in remarks),
            describe=f"{remarks} to be said",
        )
        assert health.problem() is None, "one bad namespace takes no process out of service"

        grant(api, closed.name, "list", "watch")
        await closed.wait_condition("payments", "Ready", "True")
        await wait_for(lambda: list(health.unreadable) == [missing], describe="one to be left")
        # It is watched, not only listed.
        closed.patch("payments", partitions=4)
        await closed.wait_condition("payments", "Synced", "True")
        namespace.patch("orders", partitions=4)
        await namespace.wait_condition("orders", "Synced", "True")

        closed.client.create("/api/v1/namespaces", {"metadata": {"name": missing}})
        grant(api, missing, "list", "watch")
        await wait_for(lambda: not health.unreadable, describe="all to be readable")


def reconciliations(registry: CollectorRegistry) -> float:
    return sum(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "regent_reconciliations_total"
    )


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("protocol", [(2, 8), (2, 7)])
async def test_a_topic_that_somebody_deletes_is_not_created_again_unsaid_where_no_status_is_stored(
    api: KubernetesApi, namespace: Namespace, protocol: tuple[int, int]
) -> None:
    """What was lost has to be said first, and onForeignDeletion is Alert. Below 2.8 topics have no
    ids."""
    grant(api, namespace.name, "list", "watch", patch_status=False)
    namespace.apply(topic("orders"))
    with SimulatedCluster(protocol=protocol) as cluster:
        controller = LiveController(cluster)
        registry = CollectorRegistry()
        times = {"resync_interval_s": 0.5, "resync_spread_s": 0.1, "accepted_settle_s": 0.5}
        async with supervised(controller, [namespace.name], registry=registry, **times):
            await namespace.wait_event("orders", "Warning", "WriteRefused")
            made = controller.view.topics["orders"].topic_id
            assert (made is not None) == (protocol >= (2, 8))
            cluster.delete_topic("orders")
            await wait_for(
                lambda: "orders" not in controller.view.topics, describe="the topic to be gone"
            )
            seen = reconciliations(registry)
            await wait_for(
                lambda: reconciliations(registry) >= seen + 4,
                describe="some occasions for a second creation",
            )
            grant(api, namespace.name, "list", "watch")
            body = await namespace.wait_condition(
                "orders", "Stalled", "True", "TopicDeletedExternally"
            )
    lost = body["status"]["lastForeignDeletion"]
    assert lost.get("topicId") == (None if made is None else topic_id_to_text(made))
    assert [type(change) for change in controller.changes] == [CreateTopic]


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    ("kept", "missing"),
    [
        ({"get": False}, "get kafkatopics.kafka.regent.dev"),
        ({"patch": False}, "patch kafkatopics.kafka.regent.dev"),
        ({"patch_status": False}, "patch kafkatopics.kafka.regent.dev/status"),
    ],
)
async def test_a_right_beside_list_and_watch_that_is_taken_away_is_named(
    api: KubernetesApi,
    namespace: Namespace,
    cluster: SimulatedCluster,
    kept: dict[str, bool],
    missing: str,
) -> None:
    """Statuses are out of date then, and cannot say so, or a restored backup is not noticed."""
    grant(api, namespace.name, "list", "watch")
    namespace.apply(topic("orders"))
    async with supervised(LiveController(cluster), [namespace.name]) as health:
        await namespace.wait_condition("orders", "Ready", "True")
        assert health.remark() is None
        grant(api, namespace.name, "list", "watch", **kept)
        namespace.apply(topic("payments"))
        named = f"missing right: {missing} in namespace {namespace.name};"
        await wait_for(lambda: named in (health.remark() or ""), describe=named)
        assert (*health.unreadable, *health.unwritable) == (namespace.name,)
        assert health.problem() is None

        grant(api, namespace.name, "list", "watch")
        await namespace.wait_condition("payments", "Ready", "True")
        await wait_for(lambda: health.remark() is None, describe="no remark any more")
