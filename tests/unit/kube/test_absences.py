"""From when the absence of a controller counts, and which Regent there is instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regent.controller.commands import Command, Outcome
from regent.controller.view import ClusterView
from regent.kube.absences import Absences
from regent.kube.settings import KubeSettings
from regent.model.active_regent import ActiveRegent, ServedResources
from tests.unit.kube.jumping_clock import elapse, run

BODY = {"metadata": {"namespace": "shop"}}
SETTINGS = KubeSettings(lease_namespace="web", lease_name="regent", unknown_after_s=120.0)
OTHER = ActiveRegent(7, ServedResources("kafka/regent"))
ELSEWHERE = ActiveRegent(8, ServedResources("kafka/regent", ("bank",)))


class Port:
    """A controller, as far as its view goes."""

    def __init__(self) -> None:
        self.view = ClusterView()

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        """Nobody is told."""

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        return ()


def absences(port: Port) -> Absences:
    return Absences(port, SETTINGS, why_inactive=lambda: "it waits")


def test_it_counts_from_the_beginning_and_from_the_last_term() -> None:
    async def scenario() -> None:
        port = Port()
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

    run(scenario())


def test_who_was_elected_has_the_time_until_the_cluster_is_read() -> None:
    async def scenario() -> None:
        port = Port()
        port.view = ClusterView(active_regent=OTHER)
        counted = absences(port)
        await elapse(3600)
        port.view = ClusterView(is_active=True)
        assert counted.of(BODY).for_s == 0, "there was another one until now"
        await elapse(7)
        assert counted.of(BODY).for_s == 7
        port.view = ClusterView(is_active=True, is_complete=True)
        await elapse(7)
        assert counted.of(BODY).for_s == 0

    run(scenario())


def test_who_becomes_or_ceases_to_be_the_controller_has_the_time_anew() -> None:
    async def scenario() -> None:
        port = Port()
        counted = absences(port)
        for regent in (OTHER, ELSEWHERE, None):
            await elapse(3600)
            assert counted.of(BODY).for_s == 3600
            port.view = ClusterView(active_regent=regent)
            assert counted.of(BODY).for_s == 0, "whether the news has come or not"

    run(scenario())


def test_a_resource_is_left_to_who_serves_it() -> None:
    async def scenario() -> None:
        port = Port()
        counted = absences(port)
        assert not counted.of(BODY).is_looked_after
        port.view = ClusterView(active_regent=OTHER)
        found = counted.of(BODY)
        assert (found.regent, found.lease, found.is_looked_after) == (OTHER, "web/regent", True)
        port.view = ClusterView(active_regent=ELSEWHERE)
        assert not counted.of(BODY).is_looked_after

    run(scenario())
