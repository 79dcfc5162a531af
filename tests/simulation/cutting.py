"""Disturbances of the controller at an effect, and the places where a sample cuts stories short."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from regent.simulation.zookeeper_effects import ZooKeeperEffect
from regent.zk_data import effects as zk_effects
from tests.simulation.branching import play_every_cut
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import Place, RegentProcess
from tests.simulation.playing import Cut, Scenario, play_with

AT_EVERY_WRITE = (
    Disturbance.CRASH_BEFORE,
    Disturbance.LOSE_BEFORE,
    Disturbance.LOSE_AFTER,
    Disturbance.EXPIRE_AFTER,
)
CUTS_PER_PLAY: Final = 3
"""The least cuts of each play in a sample."""
FORGOTTEN: Final = "a broker fails at requests for a while"
"""What a broker has refused is known for a term. If it took the leader epoch over before it
failed, the next controller's LeaderAndIsr of that epoch changes nothing, as in Kafka: the next
change of the partition does. So it is cut where the term goes on, and nowhere else."""


class Play(NamedTuple):
    """A story as it is played, perhaps with a broker's controller before the next Regent."""

    name: str
    rivals: bool


def disturbances(effect: zk_effects.Effect[object]) -> Iterator[Disturbance]:
    """All that can befall the controller at an effect.

    AFTER means: applied, but the answer is lost. A crash before an effect that writes nothing is
    the same as a crash after the effect before it. A lost session shows at an effect on ZooKeeper.
    """
    yield Disturbance.CRASH_AFTER
    if isinstance(effect, ZooKeeperEffect):
        yield Disturbance.EXPIRE_BEFORE
    if isinstance(effect, zk_effects.Write | zk_effects.Multi):
        yield from AT_EVERY_WRITE
    if isinstance(effect, zk_effects.Write) and len(effect.operations) > 1:
        yield from (d for d in Disturbance if d.is_halfway)


def _disturbances_of(name: str, effect: zk_effects.Effect[object]) -> Iterator[Disturbance]:
    for disturbance in disturbances(effect):
        if name != FORGOTTEN or not (disturbance.is_crash or disturbance.is_expiry):
            yield disturbance


def failures_everywhere(play: Play, scenario: Scenario) -> list[str]:
    """Cut a story short at each of its effects. Return what is not put right."""
    return play_every_cut(
        scenario, lambda _, effect: _disturbances_of(play.name, effect), rivals=play.rivals
    )


def failures_of_sample(stories: Mapping[str, Scenario]) -> list[str]:
    """Cut stories short at a sample of their effects. Return what is not put right."""
    failures: list[str] = []
    for play, cuts in sample(stories).items():
        befalling: dict[int, list[Disturbance]] = {}
        for cut in sorted(cuts, key=lambda cut: (cut.effect, cut.disturbance.value)):
            befalling.setdefault(cut.effect, []).append(cut.disturbance)
        failures += (
            f"{play}: {failure}"
            for failure in play_every_cut(
                stories[play.name],
                lambda number, _, befalling=befalling: befalling.get(number, ()),  # type: ignore[misc]
                rivals=play.rivals,
            )
        )
    return failures


def sample(stories: Mapping[str, Scenario]) -> dict[Play, set[Cut]]:
    """Choose cuts, the same in every run: each disturbance at each place of the core that some
    story reaches, spread evenly over the plays.
    """
    candidates: dict[Play, list[Cut]] = {}
    kinds: dict[tuple[Place, Disturbance], list[tuple[Play, Cut]]] = {}
    for play in (Play(name, rivals) for name in stories for rivals in (False, True)):
        candidates[play] = []
        for number, (place, effect) in enumerate(_places(stories[play.name], play), start=1):
            for disturbance in _disturbances_of(play.name, effect):
                cut = Cut(number, disturbance)
                candidates[play].append(cut)
                kinds.setdefault((place, disturbance), []).append((play, cut))
    chance = random.Random("cuts")
    chosen: dict[Play, set[Cut]] = {play: set() for play in candidates}
    for of_kind in sorted(kinds.values(), key=len):
        least = min(len(chosen[play]) for play, _ in of_kind)
        play, cut = chance.choice([c for c in of_kind if len(chosen[c[0]]) == least])
        chosen[play].add(cut)
    for play, cuts in chosen.items():
        others = [cut for cut in candidates[play] if cut not in cuts]
        cuts.update(chance.sample(others, min(len(others), max(0, CUTS_PER_PLAY - len(cuts)))))
    return chosen


def _places(scenario: Scenario, play: Play) -> list[tuple[Place, zk_effects.Effect[Any]]]:
    """Play a story undisturbed. Return its effects, each with the place that asked for it."""
    places: list[tuple[Place, zk_effects.Effect[Any]]] = []

    def note(process: RegentProcess, _: int, effect: zk_effects.Effect[Any]) -> None:
        places.append((process.place(), effect))

    play_with(scenario, note, rivals=play.rivals)
    return places
