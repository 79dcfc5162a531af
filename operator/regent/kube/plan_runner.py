"""Who makes a plan of a snapshot: the seam between Regent and a planner.

A child process is one (:mod:`regent.kube.planner_process`), a SparkApplication another one
(:mod:`regent.kube.spark_runner`): both get the same task, and their answers are read alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from regent.planning.goals import PlannerGoals
from regent.planning.histories import PlannerHistory
from regent.planning.results import PlanResult
from regent.planning.spark_jobs import PlanOwner, SparkTask


@dataclass(frozen=True, slots=True)
class PlanTask:
    """What is to be planned.

    Attributes:
        snapshot: A snapshot file, as JSON.
        spark: What makes it a job on Spark; None: it is none.
        history: Whose loads count instead of the snapshot's; None: none.
    """

    snapshot: bytes
    goals: PlannerGoals
    spark: SparkTask | None = None
    history: PlannerHistory | None = None


class PlanRunner(Protocol):
    """Has plans made."""

    async def run(self, task: PlanTask) -> PlanResult:
        """What the planner answers. The same task has the same answer, unless the planner fails.

        When it is cancelled nothing of the planning goes on that a later Regent would not find.
        """
        ...


class JobRunner(PlanRunner, Protocol):
    """Has plans made by jobs that outlive this process, several at a time for several resources."""

    async def has_job(self, owner: PlanOwner) -> bool:
        """Whether a job of a resource is there that has not ended.

        Raises:
            KubeError: That cannot be seen.
        """
        ...

    async def give_up(self, owner: PlanOwner) -> None:
        """Delete the jobs of a resource that does not want its plan any more and has not got it:
        those that have not ended.

        Raises:
            KubeError: They are still there.
        """
        ...
