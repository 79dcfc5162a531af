"""A replica that is suspected, or that leaves, is deposed by the next: cut short everywhere, and in
worlds of chance, where most suspicions are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from regent.controller import events as e
from regent.zk_data import effects as zk_effects
from tests.simulation.convergence import check_converged
from tests.simulation.cutting import disturbances
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.playing import Cut
from tests.simulation.simulation import simulate
from tests.simulation.swarm import CALM_SPEEDS, Swarm
from tests.simulation.world import World
from tests.support.soak import soak

SEEDS = range(120)


class Story:
    """Two replicas, of which one leads. The other one finds it absent."""

    def __init__(self, *, rivals: bool, echo: Callable[[str], None] | None = None) -> None:
        swarm = Swarm(regents=2, rivals=rivals, speeds=CALM_SPEEDS, suspects=True)
        self.world = World("take-over", swarm=swarm, echo=echo)
        self.world.is_turbulent = False
        self.world.settle()
        self.world.workload.create_topic("a", {0: (1, 2, 3), 1: (2, 3)})
        self.world.settle()
        self.leader, self.other = sorted(self.world.regents, key=lambda p: not p.is_active)
        self.performed: list[zk_effects.Effect[Any]] = []

    def disturb(self, number: int, disturbance: Disturbance) -> None:
        """Something befalls the other one at an effect, counted from 1."""

        def disturb(process: RegentProcess, effect: zk_effects.Effect[Any]) -> Disturbance | None:
            if process is not self.other:
                return None
            self.performed.append(effect)
            if len(self.performed) != number:
                return None
            if disturbance.is_crash:
                self.world.restart_regent_after(process.slot, 1)
            return disturbance

        self.world.disturb = disturb

    def suspect(self, *, is_named: bool = False, until: Callable[[], bool] = lambda: False) -> None:
        absent = e.AbsentReplica(self.leader.client.session_id, "suspected")
        event = e.ReplicasAbsent(self.other.client.session_id, (absent,), is_named)
        self.other.put(event)
        self.world.settle(until=until)

    def end(self) -> None:
        """Everybody wakes up, and the cluster is whole."""
        self.leader.is_paused = False
        self.world.settle()
        check_converged(self.world)


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("rivals", [False, True])
def test_no_broker_leads_in_between(rivals: bool, is_frozen: bool) -> None:
    story = Story(rivals=rivals)
    epoch = story.world.safety.epoch
    story.leader.is_paused = is_frozen
    story.suspect()
    assert story.other.is_active
    story.end()
    assert story.other.is_active
    assert not story.leader.is_active
    assert story.world.safety.epoch == epoch + 1


def test_one_that_is_named_takes_over_from_one_that_goes_on_to_work() -> None:
    story = Story(rivals=True)
    epoch = story.world.safety.epoch
    story.suspect(is_named=True)
    assert story.other.is_active
    assert story.world.safety.epoch == epoch + 1
    story.leader.shut_down()
    story.end()
    assert story.world.safety.epoch == epoch + 1


@pytest.mark.parametrize("is_deposed", [False, True])
def test_one_that_wakes_up_asks_before_it_sends_what_it_has(is_deposed: bool) -> None:
    """Its successor has reached no broker yet, so all would obey the former one."""
    lines: list[str] = []
    story = Story(rivals=False, echo=lines.append)
    world, leader = story.world, story.leader
    world.workload.create_topic("b", {0: (1, 2, 3)})
    world.settle(until=lambda: world.network.is_busy(leader))
    assert world.network.is_busy(leader)
    leader.is_paused = True
    world.clock.advance(3_000)
    epoch = world.safety.epoch
    if is_deposed:
        story.suspect(until=lambda: world.safety.epoch > epoch)
    leader.is_paused = False
    woken_at = len(lines)
    assert not leader.can_send
    story.end()
    assert leader.is_active is not is_deposed
    said = [line for line in lines[woken_at:] if f"{leader.name} " in line]
    asked = next(n for n, line in enumerate(said) if "has slept" in line)
    assert f"is_controller={not is_deposed}" in said[asked]
    sent = [n for n, line in enumerate(said) if " < " in line]
    assert (not sent) if is_deposed else (sent and min(sent) > asked)


@pytest.mark.parametrize("first_frozen", [0, pytest.param(1, marks=soak("cuts"))])
def test_a_take_over_cut_anywhere_is_put_right(first_frozen: int) -> None:
    """At every second cut the former leader is frozen, at the others it goes on to work."""
    last = Story(rivals=True)
    last.disturb(0, Disturbance.LOSE_AFTER)
    last.suspect()
    effects = enumerate(last.performed, start=1)
    cuts = [Cut(number, each) for number, effect in effects for each in disturbances(effect)]
    for index, (number, disturbance) in enumerate(cuts):
        story = Story(rivals=True)
        story.leader.is_paused = index % 2 == first_frozen
        story.disturb(number, disturbance)
        story.suspect()
        story.end()
    assert len(last.performed) > 20


def test_worlds_of_chance_have_replicas_that_depose_each_other() -> None:
    lines: list[str] = []
    seeds = [seed for seed in SEEDS if World(seed).swarm.suspects]
    assert len(SEEDS) / 8 < len(seeds) < len(SEEDS) / 2
    for seed in seeds:
        simulate(seed, steps=500, echo=lines.append)
    assert len([line for line in lines if "Taken over from another replica" in line]) > 5
