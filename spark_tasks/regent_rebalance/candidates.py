"""Plans of one snapshot with several sets of options, and which of them is the best.

Each is what ``regent plan make --json`` says in a process of its own, so a plan that is made on
Spark is byte for byte the one that a child process of Regent makes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

PLANS: Final = (0, 4)
"""Exit statuses that come with a plan."""

_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Planning has one thread; the others belong to other tasks of the executor."""


class Answer(NamedTuple):
    """What a run of the planner has said.

    Attributes:
        status: Its exit status; negative if a signal has ended it.
        output: The plan; empty if there is none.
        errors: Its standard error.
    """

    status: int
    output: bytes
    errors: bytes

    @property
    def said(self) -> bytes:
        """The plan, or why there is none."""
        return self.output if self.status in PLANS else self.errors


def make_answer(snapshot: bytes, suffix: str, options: Sequence[str]) -> Answer:
    """Run the planner.

    Args:
        suffix: Of the snapshot's name: ``.parquet`` if it is Parquet, else it is JSON.
        options: Of ``regent plan make``.
    """
    if suffix != ".parquet":
        return _run("/dev/stdin", options, snapshot)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"snapshot{suffix}"
        file.write_bytes(snapshot)
        return _run(str(file), options, b"")


def _run(file: str, options: Sequence[str], given: bytes) -> Answer:
    # An executor finds the package by its sys.path, which a child does not inherit.
    environment = {
        **os.environ,
        **_ONE_THREAD,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "regent_rebalance", "make", file, "--json", *options],
        input=given,
        capture_output=True,
        env=environment,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def best_of(answers: Sequence[Answer]) -> int:
    """The index of the best one: the fewest goals that are missed, then the fewest new replicas,
    then the fewest bytes, then the first. Without any plan the first one says why.

    Raises:
        InvalidInputError: A plan is damaged. A single one is not looked at: it is the best.
    """
    if len(answers) == 1:
        return 0
    ranks = [(*_rank(answer, index), index) for index, answer in enumerate(answers)]
    return min(ranks)[-1]


def _rank(answer: Answer, index: int) -> tuple[bool, int, int, int]:
    if answer.status not in PLANS:
        return True, 0, 0, 0
    # Executors have no use for what this loads, and load this module for each plan.
    from regent_rebalance.json_files import decode_plan

    summary = decode_plan(answer.output, source=f"the plan of candidate {index + 1}").summary
    missed = sum(not goal.met for goal in summary.goals)
    return False, missed, summary.moves, summary.bytes
