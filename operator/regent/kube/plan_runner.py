"""Who makes a plan of a snapshot: the seam between Regent and a planner.

A planner that runs elsewhere, as a Spark application for instance, is another
:class:`PlanRunner`: it gets the same task, and its answer is read in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from regent.planning.goals import PlannerGoals
from regent.planning.results import PlanResult


@dataclass(frozen=True, slots=True)
class PlanTask:
    """What is to be planned.

    Attributes:
        snapshot: A snapshot file, as JSON.
    """

    snapshot: bytes
    goals: PlannerGoals


class PlanRunner(Protocol):
    """Has plans made, one at a time."""

    async def run(self, task: PlanTask) -> PlanResult:
        """What the planner answers. The same task has the same answer, unless the planner fails.

        When it is cancelled nothing of the planning goes on.
        """
        ...
