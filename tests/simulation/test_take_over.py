"""A replica that is suspected, or that leaves, is deposed by the next: cut short everywhere, and in
worlds of chance, where most suspicions are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller import effects as fx
from regent.controller import events as e
from tests.simulation.convergence import check_converged
from tests.simulation.cutting import disturbances
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.simulation import simulate
from tests.simulation.swarm import CALM_SPEEDS, Swarm
from tests.simulation.world import World

SEEDS = range(120)


class Story:
    """Two replicas, of which one leads. The other one finds it absent.

    Attributes:
        performed: The effects of the other one since then.
    """

    def __init__(self, *, rivals: bool) -> None:
        swarm = Swarm(regents=2, rivals=rivals, speeds=CALM_SPEEDS, suspects=True)
        self.world = World("take-over", swarm=swarm)
        self.world.is_turbulent = False
        self.world.settle()
        self.world.workload.create_topic("a", {0: (1, 2, 3), 1: (2, 3)})
        self.world.settle()
        self.leader, self.other = sorted(self.world.regents, key=is_active, reverse=True)
        self.performed: list[fx.Effect[Any]] = []

    def disturb(self, number: int, disturbance: Disturbance) -> None:
        """Something befalls the other one at an effect, counted from 1."""

        def disturb(process: RegentProcess, effect: fx.Effect[Any]) -> Disturbance | None:
            if process is not self.other:
                return None
            self.performed.append(effect)
            if len(self.performed) != number:
                return None
            if disturbance.is_crash:
                self.world.restart_regent_after(process.slot, 1)
            return disturbance

        self.world.disturb = disturb

    def suspect(self, *, is_named: bool = False) -> None:
        absent = e.AbsentReplica(self.leader.client.session_id, "suspected")
        event = e.ReplicasAbsent(self.other.client.session_id, (absent,), is_named)
        self.other.put(event)
        self.world.settle()

    def end(self) -> None:
        """Everybody wakes up, and the cluster is whole."""
        self.leader.is_paused = False
        self.world.settle()
        check_converged(self.world)


def is_active(process: RegentProcess) -> bool:
    return process.controller.active is not None


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("rivals", [False, True])
def test_no_broker_leads_in_between(rivals: bool, is_frozen: bool) -> None:
    story = Story(rivals=rivals)
    epoch = story.world.safety.epoch
    story.leader.is_paused = is_frozen
    story.suspect()
    assert is_active(story.other)
    story.end()
    assert is_active(story.other)
    assert not is_active(story.leader)
    assert story.world.safety.epoch == epoch + 1


def test_one_that_is_named_takes_over_from_one_that_goes_on_to_work() -> None:
    story = Story(rivals=True)
    epoch = story.world.safety.epoch
    story.suspect(is_named=True)
    assert is_active(story.other)
    assert story.world.safety.epoch == epoch + 1
    story.leader.shut_down()
    story.end()
    assert story.world.safety.epoch == epoch + 1


@pytest.mark.parametrize("is_frozen", [False, True])
def test_whatever_is_cut_short_is_put_right(is_frozen: bool) -> None:
    number, last = 0, Story(rivals=True)
    last.disturb(0, Disturbance.LOSE_AFTER)
    last.suspect()
    for number, effect in enumerate(last.performed, start=1):
        for disturbance in disturbances(effect):
            story = Story(rivals=True)
            story.leader.is_paused = is_frozen
            story.disturb(number, disturbance)
            story.suspect()
            story.end()
    assert number > 20


def test_worlds_of_chance_have_replicas_that_depose_each_other() -> None:
    lines: list[str] = []
    seeds = [seed for seed in SEEDS if World(seed).swarm.suspects]
    assert len(SEEDS) / 8 < len(seeds) < len(SEEDS) / 2
    for seed in seeds:
        simulate(seed, steps=500, echo=lines.append)
    assert len([line for line in lines if "Taken over from another replica" in line]) > 5
