"""A take-over from the standby's cache: in stories, and in worlds of chance.

That what is loaded is the truth is checked at each, by :mod:`tests.simulation.checkers.standby`.
"""

from __future__ import annotations

import pytest

from tests.simulation.playing import play
from tests.simulation.simulation import simulate
from tests.simulation.standby import SimulatedStandby
from tests.simulation.standby_scenarios import STANDBY_SCENARIOS
from tests.simulation.world import World

SEEDS = range(24)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Partitions of each copy that a take-over has had."""
    taken: list[int] = []

    async def read(self: SimulatedStandby) -> object:
        copy = await original(self)
        if copy is not None:
            taken.append(copy.cluster.partition_count)
        return copy

    original = SimulatedStandby.read
    monkeypatch.setattr(SimulatedStandby, "read", read)
    return taken


@pytest.mark.parametrize("name", STANDBY_SCENARIOS)
def test_the_stories_load_the_cache(name: str, copies: list[int]) -> None:
    play(STANDBY_SCENARIOS[name])
    assert copies
    assert max(copies) > 0


def test_worlds_of_chance_load_the_cache(copies: list[int]) -> None:
    """Those that keep one, which are some half of all."""
    seeds = [seed for seed in SEEDS if World(seed).swarm.warm_standby]
    assert len(SEEDS) / 4 < len(seeds) < len(SEEDS) * 3 / 4
    for seed in seeds:
        simulate(seed, steps=500)
    assert len([partitions for partitions in copies if partitions]) > len(seeds) / 3
