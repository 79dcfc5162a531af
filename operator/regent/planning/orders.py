"""What is to be planned, and what has come of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from regent.controller.view import ClusterView
from regent.planning.goals import PlannerGoals
from regent.planning.results import PlannedChanges, PlanResult
from regent.resources.rebalance_history import RebalanceHistory
from regent.resources.rebalance_spark import RebalanceSpark

LiveBrokers = tuple[tuple[int, str | None], ...]
"""Live brokers, each with its rack."""


def live_brokers(view: ClusterView) -> LiveBrokers:
    """The live brokers of a view, as orders have them."""
    return tuple((id_, broker.rack) for id_, broker in sorted(view.brokers.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningOrder:
    """A plan that is wanted. An order that is equal to one under way asks for nothing more.

    Attributes:
        goals: Without the topics that the namespace of the resource may not move: these are pinned
            when the snapshot is taken.
        brokers: With others there is another plan.
        spark: The job that makes it; None: a process beside Regent does.
        history: Which loads of the history it is made from; None: those of the snapshot.
        attempt: 1 the first; a plan that was out of date when it came, and a planner that failed,
            are followed by another one.
    """

    goals: PlannerGoals
    brokers: LiveBrokers
    spark: RebalanceSpark | None = None
    history: RebalanceHistory | None = None
    attempt: int = 1

    def is_like(self, other: PlanningOrder) -> bool:
        """Whether both ask for the same."""
        return dataclasses.replace(self, attempt=other.attempt) == other

    def again(self) -> PlanningOrder:
        """The next attempt."""
        return dataclasses.replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningOutcome:
    """What has come of an order.

    Attributes:
        remarks: What the snapshot lacked.
        at: Monotonic seconds.
    """

    order: PlanningOrder
    result: PlanResult
    remarks: tuple[str, ...] = ()
    at: float

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics of the plan, each once; none if there is no plan."""
        if not isinstance(self.result, PlannedChanges):
            return ()
        return tuple(dict.fromkeys(change.topic for change in self.result.changes))
