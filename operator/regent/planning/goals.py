"""What a planner is asked for, as options of ``regent plan``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerGoals:
    """Goals, and what is given. The same goals and the same snapshot have the same plan.

    Attributes:
        names: Goals that count; none: those that the planner takes then. Of soft ones the first
            counts most.
        replica_balance_percent: Threshold of ReplicaDistributionGoal, 110 for 1.10.
        leader_balance_percent: Threshold of LeaderReplicaDistributionGoal.
        max_replicas: Replicas that one broker may have; None: any number.
        drained: Ids of brokers that shall have no replica.
        excluded: Ids of brokers that get no new replica.
        pinned: Topics that stay as they are.
        min_leaders: Topics with the number of partitions that each broker shall lead.
    """

    names: tuple[str, ...] = ()
    replica_balance_percent: int = 110
    leader_balance_percent: int = 110
    max_replicas: int | None = None
    drained: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    pinned: tuple[str, ...] = ()
    min_leaders: tuple[tuple[str, int], ...] = ()

    def arguments(self) -> tuple[str, ...]:
        """The command line's options."""
        return tuple(self._arguments())

    def _arguments(self) -> Iterator[str]:
        yield f"--replica-balance={_threshold(self.replica_balance_percent)}"
        yield f"--leader-balance={_threshold(self.leader_balance_percent)}"
        if self.max_replicas is not None:
            yield f"--max-replicas={self.max_replicas}"
        for option, values in (
            ("--goal", self.names),
            ("--drain", self.drained),
            ("--exclude", self.excluded),
            ("--pin", self.pinned),
        ):
            for value in values:
                yield f"{option}={value}"
        for topic, leaders in self.min_leaders:
            yield f"--min-leaders={topic}={leaders}"


def _threshold(percent: int) -> str:
    return f"{percent // 100}.{percent % 100:02}"
