"""Runs one seed from beginning to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.trace import InvariantViolatedError
from tests.simulation.world import World

DEFAULT_STEPS = 1_000


class Finished(NamedTuple):
    """A seed that broke no invariant.

    Attributes:
        digest: Of the whole trace: equal for equal seeds and steps.
    """

    digest: str
    lines: int
    simulated_ms: int
    steps: int
    faults: Counter[str]


class SeedFailedError(AssertionError):
    """A seed broke an invariant. The message has all that is needed to see it again."""


def simulate(
    seed: int, *, steps: int = DEFAULT_STEPS, echo: Callable[[str], None] | None = None
) -> Finished:
    """Turbulence for a number of steps, then calm; or SeedFailedError with how to replay."""
    world = World(seed, echo=echo)
    world.trace.line("world", "begins", world.swarm)
    try:
        world.run(steps)
        world.converge()
    except InvariantViolatedError as violated:
        raise SeedFailedError(
            f"{world.trace.tail()}\n\n{violated}\n\n"
            f"replay: python -m tests.simulation --seed {seed} --steps {steps} --trace"
        ) from violated
    return Finished(
        world.trace.digest, world.trace.count, world.clock.now_ms(), steps, world.faults.counts
    )
