"""A defect in what only shows what the controller does, or helps it, costs the cluster nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from regent.runtime import view_publisher
from regent.runtime.restarted_parts import VIEW
from regent.runtime.view_publisher import ViewPublisher
from regent.services import controller_loop
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import wait_for


class Failing:
    """Stands for a function that fails when it is called for the first time."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.calls = 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise MemoryError("no room")
        return self._function(*arguments, **options)


@pytest.mark.parametrize(
    ("owner", "function", "part"),
    [
        (view_publisher, "topic_view", VIEW),
        (ViewPublisher, "look_for_uninformed", "the look for brokers out of reach"),
        (controller_loop, "gauges_of", "what metrics show"),
    ],
)
def test_what_only_shows_or_helps_costs_no_controller_if_it_fails(
    monkeypatch: pytest.MonkeyPatch, owner: object, function: str, part: str
) -> None:
    monkeypatch.setattr(controller_loop, "UNINFORMED_CHECK_S", 0.01)
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        epoch = controller.view.controller_epoch
        failing = Failing(getattr(owner, function))
        # a function of a module is found again by its name, a method needs its object
        stand_in = failing if not isinstance(owner, type) else lambda *given: failing(*given)
        monkeypatch.setattr(owner, function, stand_in)
        cluster.create_topic("t", [(1, 2)])
        wait_for(
            lambda: (
                failing.calls > 1 and controller.view.is_complete and "t" in controller.view.topics
            ),
            "the part to go on",
        )
        service = controller.service
        assert not service.has_ended
        assert controller.view.controller_epoch == epoch
        assert service.readiness_problem() is None
        remark = service.remark()
        assert remark == f"{part} has failed, and is tried again: MemoryError('no room')"


def test_failed_view_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what it lacks would be concluded from it."""
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:

        def fail(*_: object) -> None:
            raise MemoryError("no room")

        monkeypatch.setattr(view_publisher, "topic_view", fail)
        cluster.create_topic("t", [(1, 2)])
        wait_for(lambda: not controller.view.is_complete, "an incomplete view")
        assert controller.view.is_active
        monkeypatch.undo()
        controller.wait_until_active()
        assert "t" in controller.view.topics
