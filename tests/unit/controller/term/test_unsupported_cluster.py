"""Brokers that need answers of the controller: such a cluster is left alone."""

from __future__ import annotations

import pytest

from regent.controller import effects
from regent.controller import events as e
from regent.controller.term.cluster_loading import refuse_unsupported
from regent.model.errors import UnsupportedClusterError
from tests.unit.controller.world import World, make_broker


def test_brokers_below_2_7_are_supported() -> None:
    refuse_unsupported([make_broker(1), make_broker(2, registration_version=2)])


def test_a_single_newer_broker_is_named_with_the_way_out() -> None:
    with pytest.raises(UnsupportedClusterError, match=r"brokers \[2\].*protocol\.version=2\.6"):
        refuse_unsupported([make_broker(1), make_broker(2, registration_version=5)])


def test_its_controller_is_not_taken_over_and_the_reason_is_told() -> None:
    world = World()
    world.start_broker(1)
    world.start_broker(2, registration_version=5)
    world.elect_rival(1)
    controller = world.controller()
    world.process(controller, e.Startup(), e.Eligible())
    assert controller.active is None
    assert world.holder() == 1
    assert "brokers [2]" in (controller.life.refusal or "")
    assert not any(isinstance(x, effects.Multi) for x in world.driver.performed)


def test_when_the_brokers_are_set_back_it_is_taken_over() -> None:
    world = World()
    world.start_broker(2, registration_version=5)
    controller = world.controller()
    world.process(controller, e.Startup(), e.Eligible())
    world.stop_broker(2)
    world.start_broker(2)
    world.process(controller, world.driver.timers["reelect"].event)
    assert controller.active is not None
    assert controller.life.refusal is None


def test_a_newer_broker_that_joins_ends_it() -> None:
    world = World()
    world.start_broker(1)
    controller = world.active_controller()
    world.start_broker(2, registration_version=5)
    world.deliver(controller)
    assert controller.active is None
    assert world.holder() is None
    assert controller.life.refusal is not None
