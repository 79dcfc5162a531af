"""From when the absence of a controller counts, and which Regent there is instead."""

from __future__ import annotations

from regent.controller.view import ClusterView
from regent.kube.absences import Absences
from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.settings import KubeSettings
from regent.model.active_regent import ActiveRegent, ServedResources
from tests.support.viewed_port import ViewedPort
from tests.unit.kube.jumping_clock import elapse, jumping

BODY = {"metadata": {"namespace": "shop"}}
SETTINGS = KubeSettings(lease_namespace="web", lease_name="regent", unknown_after_s=120.0)
OTHER = ActiveRegent(7, ServedResources("kafka/regent"))
ELSEWHERE = ActiveRegent(8, ServedResources("kafka/regent", ("bank",)))
REPLICA = ActiveRegent(9, ServedResources("web/regent"))


def absences(port: ViewedPort, knowledge: ClusterKnowledge | None = None) -> Absences:
    return Absences(port, SETTINGS, knowledge, why_inactive=lambda: "it waits")


@jumping
async def test_it_counts_from_the_beginning_and_from_the_last_term() -> None:
    port = ViewedPort()
    counted = absences(port)
    await elapse(50)
    assert counted.of(BODY).for_s == 50
    port.view = ClusterView(is_active=True, is_complete=True)
    assert counted.of(BODY).for_s == 0
    await elapse(10)
    port.view = ClusterView()
    assert counted.of(BODY).for_s == 0
    await elapse(5)
    found = counted.of(BODY)
    assert (found.for_s, found.reason, found.unknown_after_s) == (5, "it waits", 120.0)


@jumping
async def test_who_becomes_or_ceases_to_be_the_controller_has_the_time_anew() -> None:
    port = ViewedPort()
    counted = absences(port)
    for regent in (OTHER, ELSEWHERE, None):
        await elapse(3600)
        assert counted.of(BODY).for_s == 3600
        port.view = ClusterView(active_regent=regent)
        assert counted.of(BODY).for_s == 0, "whether the news has come or not"


@jumping
async def test_replicas_that_fail_to_lead_one_after_the_other_do_not_begin_anew() -> None:
    """Each serves for less time than it takes until statuses have to say that nothing is known."""
    port = ViewedPort()
    knowledge = ClusterKnowledge(port)
    port.view = ClusterView(is_active=True, is_complete=True)
    assert absences(port, knowledge).of(BODY).for_s == 0
    for count, regent in enumerate((None, REPLICA, None, REPLICA)):
        port.view = ClusterView(active_regent=regent)
        knowledge.look()
        counted = absences(port, knowledge)
        await elapse(20)
        port.view = ClusterView(is_active=True)  # it reads the cluster, and fails
        await elapse(20)
        assert counted.of(BODY).for_s == 40 * (count + 1)


@jumping
async def test_it_goes_on_from_what_the_former_holder_of_the_lease_has_counted() -> None:
    port = ViewedPort()
    knowledge = ClusterKnowledge(port)
    await elapse(5)
    knowledge.inherit(100)
    counted = absences(port, knowledge)
    await elapse(30)
    assert counted.of(BODY).for_s == 130
    knowledge.inherit(10)
    assert counted.of(BODY).for_s == 10
    knowledge.inherit(500)
    assert counted.of(BODY).for_s == 10, "somebody knew it since"


@jumping
async def test_a_resource_is_left_to_who_serves_it() -> None:
    port = ViewedPort()
    counted = absences(port)
    assert not counted.of(BODY).is_looked_after
    port.view = ClusterView(active_regent=OTHER)
    found = counted.of(BODY)
    assert (found.regent, found.lease, found.is_looked_after) == (OTHER, "web/regent", True)
    port.view = ClusterView(active_regent=ELSEWHERE)
    assert not counted.of(BODY).is_looked_after
