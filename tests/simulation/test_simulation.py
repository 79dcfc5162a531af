"""Seeds hold, replay exactly, and say all that is needed when they fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.simulation import SeedFailedError, simulate
from tests.simulation.swarm import FAULTS, REMOVALS, SUSPICION, WORK
from tests.simulation.trace import InvariantViolatedError
from tests.simulation.world import World

ROOT = Path(__file__).resolve().parents[2]
FIRST_SEED = int(os.environ.get("SIMULATION_FIRST_SEED", "0"))
"""Set it to something else to try fresh seeds."""

CHUNKS = 10
SEEDS_PER_CHUNK = 10
STEPS = 1_000


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds_hold(chunk: int) -> None:
    first = FIRST_SEED + chunk * SEEDS_PER_CHUNK
    for seed in range(first, first + SEEDS_PER_CHUNK):
        simulate(seed, steps=STEPS)


def test_no_order_of_a_set_matters() -> None:
    """The order of a set of strings changes with the hash seed of the process."""
    program = (
        "from tests.simulation.simulation import simulate\n"
        "print([simulate(seed, steps=500).digest for seed in range(6)])"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": "operator:."},
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "7")
    }
    assert len(digests) == 1


def test_a_failure_names_the_seed_and_shows_the_end_of_the_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def converge(self: World) -> None:
        raise InvariantViolatedError("this must not be")

    monkeypatch.setattr(World, "converge", converge)
    with pytest.raises(SeedFailedError) as failure:
        simulate(12, steps=STEPS)
    trace, violated, replay = str(failure.value).split("\n\n")
    assert violated == "this must not be"
    assert replay.endswith("python -m tests.simulation --seed 12 --steps 1000 --trace")
    lines = trace.splitlines()
    assert len(lines) == 200
    assert all(line[:7].strip().isdigit() and line[8:16].strip().isdigit() for line in lines)


def test_a_seed_is_replayed_from_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", "3", "--steps", "50", "--trace"],
        env={**os.environ, "PYTHONPATH": "operator:."},
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert "broker-1   registers" in done.stdout
    assert simulate(3, steps=50).digest in done.stdout


def test_every_fault_and_every_kind_of_work_is_enabled_by_some_seed() -> None:
    swarms = [World(seed).swarm for seed in range(60)]
    assert {name for swarm in swarms for name in swarm.faults} == {*FAULTS, *REMOVALS, SUSPICION}
    assert {name for swarm in swarms for name in swarm.work} == set(WORK)
    assert {swarm.rivals for swarm in swarms} == {False, True}
