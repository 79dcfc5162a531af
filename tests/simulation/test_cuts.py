"""Stories that are cut short at their effects: a crash, a lost connection, a lost session before,
inside and after each. The gate cuts at a sample of the effects, ``make soak PARTS=cuts`` at all."""

from __future__ import annotations

import os

import pytest

from tests.simulation import playing
from tests.simulation.branching import play_every_cut
from tests.simulation.cutting import (
    CUTS_PER_PLAY,
    Play,
    disturbances,
    failures_everywhere,
    failures_of_sample,
    sample,
)
from tests.simulation.disturbances import Disturbance
from tests.simulation.endpoint_scenarios import ENDPOINT_SCENARIOS
from tests.simulation.playing import Cut, play
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.shutdown_scenarios import SHUTDOWN_SCENARIOS
from tests.simulation.standby_scenarios import STANDBY_SCENARIOS
from tests.simulation.trace import InvariantViolatedError
from tests.simulation.world import World
from tests.support.soak import soak

STORIES = SCENARIOS | SHUTDOWN_SCENARIOS | ENDPOINT_SCENARIOS | STANDBY_SCENARIOS


@soak("cuts")
@pytest.mark.parametrize("rivals", [False, True], ids=["a fresh Regent", "a broker meanwhile"])
@pytest.mark.parametrize("name", STORIES)
def test_a_story_cut_anywhere_is_put_right(name: str, rivals: bool) -> None:
    failures = failures_everywhere(Play(name, rivals), STORIES[name])
    assert not failures, "\n".join(failures)


def test_stories_cut_at_each_place_of_the_core_are_put_right() -> None:
    failures = failures_of_sample(STORIES)
    assert not failures, "\n".join(failures)


def test_the_sample_has_each_place_and_each_play() -> None:
    stories = {name: STORIES[name] for name in list(STORIES)[::20]}
    plays = sample(stories)
    assert len(plays) == 2 * len(stories)
    assert min(map(len, plays.values())) >= CUTS_PER_PLAY
    assert sample(stories) == plays
    assert {cut.disturbance for cuts in plays.values() for cut in cuts} == set(Disturbance)


@pytest.mark.parametrize("error", [InvariantViolatedError("this must not be"), ZeroDivisionError()])
def test_what_a_cut_breaks_is_named(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the simulation, too, is no success."""

    def restart(*_: object) -> None:
        raise error

    monkeypatch.setattr(World, "restart_regent_after", restart)
    scenario = SCENARIOS["creation by commands"]
    performed = play(scenario)
    failures = play_every_cut(scenario, lambda *_: [Disturbance.CRASH_AFTER], rivals=False)
    assert len(failures) == len(performed)
    for number, (failure, effect) in enumerate(zip(failures, performed, strict=True), start=1):
        assert failure.startswith(f"{Cut(number, Disturbance.CRASH_AFTER)} {effect}: ")
        assert (str(error) or type(error).__name__) in failure


def test_what_is_played_from_an_effect_on_is_what_is_played_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = SCENARIOS["creation by commands"]._replace(is_whole_before=False)
    cuts = [
        Cut(number, disturbance)
        for number, effect in enumerate(play(scenario), start=1)
        for disturbance in disturbances(effect)
    ]
    parent = os.getpid()
    digests: list[str] = []

    def converge(world: World) -> None:
        if os.getpid() != parent:
            raise InvariantViolatedError(world.trace.digest)
        digests.append(world.trace.digest)

    monkeypatch.setattr(playing, "check_converged", converge)
    failures = play_every_cut(scenario, lambda _, effect: disturbances(effect), rivals=False)
    digests.clear()
    for cut in cuts:
        play(scenario, cut=cut)
    assert [failure.rpartition(": ")[2] for failure in failures] == digests
    assert len(set(digests)) > 1
