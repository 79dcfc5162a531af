"""A controller that resigns is followed by a broker's own, whatever gets lost."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller import events as e
from regent.zk_data import effects as zk_effects
from tests.simulation.convergence import check_brokers_obey
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.playing import calm_world
from tests.simulation.swarm import CALM_SPEEDS, Swarm


@pytest.mark.parametrize("disturbance", [None, Disturbance.LOSE_BEFORE, Disturbance.LOSE_AFTER])
def test_a_broker_takes_over(disturbance: Disturbance | None) -> None:
    world = calm_world("hand-over", Swarm(rivals=True, speeds=CALM_SPEEDS))
    (process,) = world.regents
    assert process.is_active
    befallen: list[zk_effects.Multi] = []

    def disturb(_: RegentProcess, effect: zk_effects.Effect[Any]) -> Disturbance | None:
        if not isinstance(effect, zk_effects.Multi) or befallen:
            return None
        befallen.append(effect)
        return disturbance

    world.disturb = disturb
    process.put(e.NotEligible())
    world.settle()
    assert len(befallen) == 1
    assert process.controller.active is None
    assert [rival.is_active for rival in world.rivals].count(True) == 1
    check_brokers_obey(world, world.safety.epoch)
