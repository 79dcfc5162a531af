"""The checkers can fail: every deliberate defect is caught within a bounded number of seeds."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from regent.controller import effects as fx
from tests.simulation.channel_history import (
    RECREATED_AND_MOVED_AWAY,
    ChannelHistory,
    play_history,
)
from tests.simulation.driver import Disturbance
from tests.simulation.mutants import MUTANTS
from tests.simulation.scenarios import SCENARIOS, Cut, play
from tests.simulation.simulation import SeedFailedError, simulate
from tests.simulation.trace import InvariantViolatedError

SEEDS = 1_000
HISTORIES = 300
STORIES = (
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
    "deletion behind a failed disk",
    "topics are rewritten without their ids",
    "topics lose their ids unseen",
    "a broker refuses for a while",
    "a broker fails at requests for a while",
)


@pytest.mark.parametrize("name", MUTANTS)
def test_it_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, caught_by = MUTANTS[name]
    mutate(monkeypatch)
    stories = (violation_of_a_story(name) for name in STORIES)
    histories = (violation_of_a_history(seed) for seed in (None, *range(HISTORIES)))
    some_seeds = (violation_of_a_seed(seed) for seed in range(SEEDS // 5))
    more_seeds = (violation_of_a_seed(seed) for seed in range(SEEDS // 5, SEEDS))
    caught = next(filter(None, chain(histories, some_seeds, stories, more_seeds)), None)
    assert caught is not None, f"{name} survives {SEEDS} seeds and {len(STORIES)} stories"
    assert re.search(caught_by, caught), f"{name} was caught, but for: {caught}"


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


def violation_of_a_story(name: str) -> str | None:
    """What a story breaks in which the answer to some write is lost, None if it holds."""
    scenario = SCENARIOS[name]
    try:
        performed = play(scenario)
        for number, effect in enumerate(performed, start=1):
            if isinstance(effect, fx.Write):
                play(scenario, cut=Cut(number, Disturbance.LOSE_AFTER))
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
