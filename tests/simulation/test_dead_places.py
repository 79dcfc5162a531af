"""Replicas are killed and started again. Their former sessions live on: nobody waits for them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from regent.controller import events as e
from regent.controller.term import life_cycle
from regent.controller.term.take_over import Predecessors, find_predecessors
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.operations import ZNode
from tests.simulation.convergence import check_converged
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.playing import calm_world
from tests.simulation.swarm import CALM_SPEEDS, Swarm
from tests.simulation.trace import InvariantViolatedError, require

SEEDS = range(40)
ROUNDS = 3
AT_EFFECTS = tuple(d for d in Disturbance if d.name.startswith("LOSE"))


class Replicas:
    """Two or three replicas, one of which leads."""

    def __init__(self, seed: int | str) -> None:
        self.chance = random.Random(f"dead places {seed}")
        swarm = Swarm(
            regents=self.chance.choice((2, 3)),
            rivals=self.chance.random() < 0.5,
            speeds=CALM_SPEEDS,
            suspects=True,
            hears=True,
        )
        self.world = calm_world(f"dead places {seed}", swarm)
        self._dead: list[int] = []

    @property
    def leader(self) -> RegentProcess:
        (leader,) = [p for p in self.world.regents if p.is_alive and p.is_active]
        return leader

    @property
    def standbys(self) -> list[RegentProcess]:
        return [p for p in self.world.regents if p.is_alive and not p.is_active]

    def kill(self, process: RegentProcess) -> None:
        self._dead.append(process.client.session_id)
        process.crash()

    def restart(self, process: RegentProcess) -> None:
        """Start it again, and let it queue up, and hear the one that leads."""
        started = self.world.start_regent(process.slot)
        leader = self.leader.client.session_id

        def is_prepared() -> bool:
            queue = self.world.elector.others_in_the_queue(self.leader)
            is_queued = started.client.session_id in queue
            return is_queued and self.world.hearing.has_heard(started, leader)

        self.world.settle(until=is_prepared)
        assert is_prepared()

    def part_standbys(self) -> None:
        """Two that stand by do not hear each other, once they were started again."""
        slots = [p.slot for p in self.standbys]
        if len(slots) == 2:
            self.world.hearing.cut = [(slots[0], slots[1])]

    def disturb(self) -> None:
        """The connections of those that live break at some of their effects."""
        at = [self.chance.randrange(1, 60) for _ in range(2)]
        count = 0

        def disturb(_: RegentProcess, effect: zk_effects.Effect[Any]) -> Disturbance | None:
            nonlocal count
            count += 1
            possible = [d for d in AT_EFFECTS if d.can_befall(effect)]
            return self.chance.choice(possible) if count in at and possible else None

        self.world.disturb = disturb

    def kill_the_leader(self) -> None:
        """And wait until another one leads: before the session of any dead one has ended."""
        self.kill(self.leader)
        self.world.settle(until=self._is_led)
        for session_id in self._dead:
            require(
                self.world.zookeeper.is_alive(session_id),
                f"a take-over has waited for the end of dead session {session_id}",
            )
        require(self._is_led(), "nobody has taken over")

    def _is_led(self) -> bool:
        return any(p.is_alive and p.is_active for p in self.world.regents)

    def restart_all_and_settle(self) -> None:
        """Whoever is dead is started again, and every former session ends."""
        self.world.disturb = None
        self.world.hearing.cut = []
        for process in [p for p in self.world.regents if not p.is_alive]:
            self.world.start_regent(process.slot)
        self.world.settle()
        self._dead.clear()
        others = self.world.elector.others_in_the_queue(self.leader)
        living = [p.client.session_id for p in self.standbys]
        require(sorted(others) == sorted(living), f"{living} have the places {others}")
        check_converged(self.world)


def play(seed: int) -> None:
    """Some standbys are killed and started again, some of them twice; then the one that leads."""
    replicas = Replicas(seed)
    for _ in range(ROUNDS):
        chance = replicas.chance
        if chance.random() < 0.5:
            replicas.part_standbys()
        for standby in chance.sample(replicas.standbys, chance.randint(1, len(replicas.standbys))):
            slot = standby.slot
            for _ in range(chance.randint(1, 2)):
                (process,) = [p for p in replicas.standbys if p.slot == slot]
                replicas.kill(process)
                replicas.world.clock.advance(chance.randint(0, 500))
                replicas.restart(process)
        if chance.random() < 0.5:
            replicas.disturb()
        replicas.kill_the_leader()
        replicas.restart_all_and_settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_take_over_waits_for_the_session_of_a_dead_replica(seed: int) -> None:
    play(seed)


def test_without_passing_them_it_would_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail."""

    async def find(event: e.ReplicasAbsent, *args: Any) -> Predecessors | None:
        return await find_predecessors(msgspec.structs.replace(event, unheard=()), *args)

    monkeypatch.setattr(life_cycle, "find_predecessors", find)
    with pytest.raises(InvariantViolatedError, match="has waited for the end of dead session"):
        play_some()


def play_some() -> None:
    for seed in SEEDS:
        play(seed)


class Partitioned:
    """Three replicas: the last one has never heard the one that leads, and has heard the other."""

    def __init__(self) -> None:
        swarm = Swarm(regents=3, speeds=CALM_SPEEDS, suspects=True, hears=True)
        self.world = calm_world("partitioned", swarm)
        self.leader = next(p for p in self.world.regents if p.is_active)
        self.between, last = [p for p in self.world.regents if p is not self.leader]
        last.crash()
        self.world.hearing.cut = [tuple(sorted((self.leader.slot, last.slot)))]  # type: ignore[list-item]
        self.last = self.world.start_regent(last.slot)
        self.world.settle()

    def suspect(self) -> None:
        """The other one dies: the last one suspects it, and does not hear the one that leads."""
        self.between.crash()
        self.world.settle()
        holder = self.world.zookeeper.get(paths.CONTROLLER)
        require(
            holder is not None and holder.ephemeral_owner == self.leader.client.session_id,
            "one that leads was deposed by one that has never heard it",
        )


def test_one_that_leads_is_not_deposed_by_one_that_has_never_heard_it() -> None:
    Partitioned().suspect()


def test_whoever_deposed_it_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def include(_self: Predecessors, holder: ZNode | None) -> bool:
        return holder is not None

    story = Partitioned()
    monkeypatch.setattr(Predecessors, "include", include)
    with pytest.raises(InvariantViolatedError, match="that has never heard it"):
        story.suspect()
