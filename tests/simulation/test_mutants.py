"""The checkers can fail: every deliberate defect is caught within a bounded number of seeds.

It has to be caught by what is meant to catch it. What else it breaks before says nothing: one
defect leads to another, and which comes first is chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import pytest

from regent.zk_data import effects as zk_effects
from tests.simulation.channel_history import (
    RECREATED_AND_MOVED_AWAY,
    ChannelHistory,
    play_history,
)
from tests.simulation.disturbances import Disturbance
from tests.simulation.endpoint_scenarios import ENDPOINT_SCENARIOS
from tests.simulation.mutants import MUTANTS
from tests.simulation.playing import Cut, play
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.shutdown_scenarios import SHUTDOWN_SCENARIOS
from tests.simulation.simulation import SeedFailedError, simulate
from tests.simulation.standby_scenarios import STANDBY_SCENARIOS
from tests.simulation.trace import InvariantViolatedError
from tests.support.soak import sample

SEEDS = 1_000
HISTORIES = 300
STORIES = SCENARIOS | SHUTDOWN_SCENARIOS | ENDPOINT_SCENARIOS | STANDBY_SCENARIOS
SOME_STORIES = (
    "a broker refuses, and is restarted",
    "a log directory fails",
    "a log directory of leaders fails",
    "preferred election by hand",
    "leaders are out of balance",
    "deletion",
    "deletion of what cannot be read",
    "reassignment to a broker that is down",
    "reassignment to another target, or cancelled",
    "reassignment of a topic that is deleted",
)


@pytest.mark.parametrize("name", sample(MUTANTS, "mutants"))
def test_it_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutant.mutate(monkeypatch)
    tries: Iterable[str | None] = attempts()
    if mutant.story is not None:
        tries = [
            violation_of_a_story(mutant.story, Disturbance.LOSE_AFTER, Disturbance.CRASH_AFTER)
        ]
    others: list[str] = []
    for caught in filter(None, tries):
        if re.search(mutant.caught_by, caught):
            return
        others.append(caught)
    pytest.fail(f"{name} survives, or is caught for something else only: {others[:5]}")


def attempts() -> Iterator[str | None]:
    """What histories, seeds and stories break, one after the other."""
    histories = (violation_of_a_history(seed) for seed in (None, *range(HISTORIES)))
    some_seeds = (violation_of_a_seed(seed) for seed in range(SEEDS // 5))
    stories = (violation_of_a_story(name, Disturbance.LOSE_AFTER) for name in SOME_STORIES)
    more_seeds = (violation_of_a_seed(seed) for seed in range(SEEDS // 5, SEEDS))
    return chain(histories, some_seeds, stories, more_seeds)


def violation_of_a_history(seed: int | None) -> str | None:
    """What a channel does wrong in a random history, or in one that chance hardly finds; None if
    nothing."""
    try:
        if seed is None:
            ChannelHistory(max_partitions=1_000).play(RECREATED_AND_MOVED_AWAY)
        else:
            play_history(seed)
    except InvariantViolatedError as violated:
        return str(violated)
    return None


def violation_of_a_story(name: str, *disturbances: Disturbance) -> str | None:
    """Cut a story short at its writes; return the invariant that breaks, None if all hold."""
    scenario = STORIES[name]
    try:
        performed = play(scenario)
        for disturbance in disturbances:
            for number, effect in enumerate(performed, start=1):
                if isinstance(effect, zk_effects.Write | zk_effects.Multi):
                    play(scenario, cut=Cut(number, disturbance))
    except InvariantViolatedError as violated:
        return str(violated)
    return None


def violation_of_a_seed(seed: int) -> str | None:
    """What a seed breaks, None if it holds."""
    try:
        simulate(seed)
    except SeedFailedError as failed:
        return str(failed.__cause__)
    return None
