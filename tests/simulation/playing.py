"""Plays a short story without chance, in which the controller may be cut short anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from regent.model.cluster import DRAWN_CONTROLLER_IDS
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.topics import decode_topic
from tests.simulation.convergence import check_converged
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.swarm import CALM_SPEEDS, Swarm
from tests.simulation.trace import require
from tests.simulation.world import World

ABSENCE_MS = 20_000
"""Until a crashed Regent process is started again: longer than its session lives."""


def calm_world(name: str, swarm: Swarm) -> World:
    """Return a world without chance that has settled, with a topic of two partitions."""
    world = World(name, swarm=swarm)
    world.is_turbulent = False
    world.settle()
    world.workload.create_topic("a", {0: (1, 2, 3), 1: (2, 3)})
    world.settle()
    return world


class Scenario(NamedTuple):
    """A story: what was before, and what happens. Each effect of the controller can be cut short.

    Attributes:
        is_whole_before: Whether nothing is wrong before the story begins.
        announces: Whether Regent appears as a live broker. No replica is on it in the end.
    """

    prepare: Callable[[World], None]
    tell: Callable[[World], None]
    is_whole_before: bool = True
    balance_check_s: int | None = None
    announces: bool = False
    protocol: tuple[int, int] = (2, 6)
    warm_standby: bool = False


class Cut(NamedTuple):
    """At which effect since the story began, from 1, and how the controller is cut short."""

    effect: int
    disturbance: Disturbance


Disturb = Callable[[RegentProcess, int, zk_effects.Effect[Any]], Disturbance | None]
"""Choice of the disturbance of a process at an effect, given its number since the story began."""


def play(
    scenario: Scenario, *, rivals: bool = False, cut: Cut | None = None
) -> list[zk_effects.Effect[Any]]:
    """Play a story to its end; the cluster must be whole then. The effects, up to the cut."""

    def disturb(
        _process: RegentProcess, number: int, _: zk_effects.Effect[Any]
    ) -> Disturbance | None:
        return cut.disturbance if cut is not None and number == cut.effect else None

    return play_with(scenario, disturb, rivals=rivals)


def play_with(
    scenario: Scenario, disturb: Disturb, *, rivals: bool
) -> list[zk_effects.Effect[Any]]:
    """As :func:`play`, where ``disturb`` decides at each effect."""
    swarm = Swarm(
        rivals=rivals,
        speeds=CALM_SPEEDS,
        balance_check_s=scenario.balance_check_s,
        announces=scenario.announces,
        protocol=scenario.protocol,
        warm_standby=scenario.warm_standby,
    )
    world = World("scenario", swarm=swarm)
    world.is_turbulent = False
    world.settle()
    scenario.prepare(world)
    world.settle()
    if scenario.is_whole_before:
        check_converged(world)
    (process,) = world.regents
    performed: list[zk_effects.Effect[Any]] = []

    def disturb_process(
        disturbed: RegentProcess, effect: zk_effects.Effect[Any]
    ) -> Disturbance | None:
        if disturbed is not process:
            return None
        performed.append(effect)
        disturbance = disturb(process, len(performed), effect)
        if disturbance is not None and disturbance.is_crash:
            world.restart_regent_after(process.slot, ABSENCE_MS if rivals else 1)
        return disturbance

    world.disturb = disturb_process
    scenario.tell(world)
    world.settle()
    world.faults.end()
    world.settle()
    check_converged(world)
    if scenario.announces:
        _check_controller_hosts_nothing(world)
    return performed


def _check_controller_hosts_nothing(world: World) -> None:
    for topic in world.zookeeper.children(paths.BROKER_TOPICS):
        node = world.zookeeper.get(paths.topic(topic))
        assert node is not None
        for partition, assignment in decode_topic(topic, node.data).assignments.items():
            require(
                not any(replica in DRAWN_CONTROLLER_IDS for replica in assignment.replicas),
                f"{topic}-{partition} has a replica on the controller: {assignment}",
            )
