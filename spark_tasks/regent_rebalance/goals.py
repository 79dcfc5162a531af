"""What a plan is to reach. Names and thresholds are those that Cruise Control's users know."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from regent_rebalance.errors import InvalidInputError

RACK = "RackAwareGoal"
REPLICA_CAPACITY = "ReplicaCapacityGoal"
REPLICA_DISTRIBUTION = "ReplicaDistributionGoal"
LEADER_DISTRIBUTION = "LeaderReplicaDistributionGoal"
ALL_GOALS = (RACK, REPLICA_CAPACITY, REPLICA_DISTRIBUTION, LEADER_DISTRIBUTION)

BALANCE_MARGIN = 0.9
"""Cruise Control balances within 90 % of the threshold that was asked for."""


@dataclass(frozen=True, slots=True)
class Goals:
    """Goals, and what is given.

    Hard, always: replicas of a partition are on different brokers; none is on a dead or drained
    broker; no partition is spread over fewer racks than it was; pinned topics stay as they are.

    Attributes:
        names: Which goals count. RackAwareGoal and ReplicaCapacityGoal are hard, the others soft.
        replica_balance: Threshold of ReplicaDistributionGoal: with 1.10, and the margin of 0.9,
            brokers have between 91 % and 109 % of the average.
        leader_balance: The same for leaders.
        max_replicas: Replicas that one broker may have (ReplicaCapacityGoal); None: any number.
        drained: Ids of brokers that are to have no replica.
        excluded: Ids of brokers that get no new replica, and keep those that they have.
        pinned: Topics that stay as they are.
        replication_factor: New replication factors, by topic.
    """

    names: tuple[str, ...] = ALL_GOALS
    replica_balance: float = 1.10
    leader_balance: float = 1.10
    max_replicas: int | None = None
    drained: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    pinned: tuple[str, ...] = ()
    replication_factor: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in ALL_GOALS:
                raise InvalidInputError(f"goal {name!r} is unknown: choose of {list(ALL_GOALS)}")
        for what, value in (
            ("replica balance", self.replica_balance),
            ("leader balance", self.leader_balance),
        ):
            if not (math.isfinite(value) and 1 <= value <= 100):
                raise InvalidInputError(
                    f"{what} {value} is no threshold: 1.10 means within 10 % of the average"
                )
        if self.max_replicas is not None and self.max_replicas < 1:
            raise InvalidInputError(f"max replicas {self.max_replicas}: at least 1")
        for topic, factor in self.replication_factor.items():
            if factor < 1:
                raise InvalidInputError(f"replication factor {factor} of {topic}: at least 1")
            if topic in self.pinned:
                raise InvalidInputError(
                    f"topic {topic} is pinned, and its replication factor is to be {factor}: "
                    "drop one of the two"
                )

    def has(self, name: str) -> bool:
        """Whether a goal counts."""
        return name in self.names


def balance_limits(total: int, brokers: int, threshold: float) -> tuple[int, int]:
    """Fewest and most of a thing that a broker may have: ReplicaDistributionAbstractGoal's limits.

    With a threshold of 1.10: floor(0.91 average) and ceil(1.09 average).
    """
    if brokers == 0:
        return 0, 0
    margin = (Fraction(str(threshold)) - 1) * Fraction(str(BALANCE_MARGIN))
    average = Fraction(total, brokers)
    return math.floor(average * max(Fraction(0), 1 - margin)), math.ceil(average * (1 + margin))
