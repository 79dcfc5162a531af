"""What a plan is to reach. Names and thresholds are those that Cruise Control's users know."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from regent_rebalance.errors import InvalidInputError

RACK = "RackAwareGoal"
MIN_LEADERS = "MinTopicLeadersPerBrokerGoal"
REPLICA_CAPACITY = "ReplicaCapacityGoal"
REPLICA_DISTRIBUTION = "ReplicaDistributionGoal"
LEADER_DISTRIBUTION = "LeaderReplicaDistributionGoal"
DISK_CAPACITY = "DiskCapacityGoal"
NETWORK_IN_CAPACITY = "NetworkInboundCapacityGoal"
NETWORK_OUT_CAPACITY = "NetworkOutboundCapacityGoal"
DISK_DISTRIBUTION = "DiskUsageDistributionGoal"
NETWORK_IN_DISTRIBUTION = "NetworkInboundUsageDistributionGoal"
NETWORK_OUT_DISTRIBUTION = "NetworkOutboundUsageDistributionGoal"
TOPIC_DISTRIBUTION = "TopicReplicaDistributionGoal"

DEFAULT_GOALS = (RACK, REPLICA_CAPACITY, REPLICA_DISTRIBUTION, LEADER_DISTRIBUTION)
"""What counts are enough for. Plans for these goals alone are exact."""

ALL_GOALS = (
    RACK,
    MIN_LEADERS,
    REPLICA_CAPACITY,
    DISK_CAPACITY,
    NETWORK_IN_CAPACITY,
    NETWORK_OUT_CAPACITY,
    REPLICA_DISTRIBUTION,
    LEADER_DISTRIBUTION,
    DISK_DISTRIBUTION,
    NETWORK_IN_DISTRIBUTION,
    NETWORK_OUT_DISTRIBUTION,
    TOPIC_DISTRIBUTION,
)
HARD_GOALS = ALL_GOALS[: ALL_GOALS.index(REPLICA_DISTRIBUTION)]
WEIGHTED_GOALS = tuple(name for name in ALL_GOALS if name not in (*DEFAULT_GOALS, MIN_LEADERS))
"""Goals that need loads. With one of them, or bytes as the cost, a plan is searched."""

MAX_TOPICS_WITH_LEADERS = 50
"""Topics whose leaders MinTopicLeadersPerBrokerGoal counts: the search has a column for each."""

BALANCE_MARGIN = 0.9
"""Cruise Control balances within 90 % of the threshold that was asked for."""


@dataclass(frozen=True, slots=True)
class Goals:
    """Goals, and what is given.

    Hard, always: replicas of a partition are on different brokers; none is on a dead or drained
    broker; no partition is spread over fewer racks than it was; pinned topics stay as they are.

    Attributes:
        names: Which goals count. HARD_GOALS are hard, the others soft: where not all of these can
            be met, one counts more than those after it.
        replica_balance: Threshold of ReplicaDistributionGoal: with 1.10, and the margin of 0.9,
            brokers have between 91 % and 109 % of the average.
        leader_balance: The same for leaders.
        resource_balance: The same for the use of disks and networks, as a share of each broker's
            capacity.
        topic_balance: Threshold of TopicReplicaDistributionGoal. Brokers have the average number of
            a topic's replicas, more or less by (threshold - 1) of it, and by TOPIC_GAP.
        capacity_threshold: Share of a capacity that may be used.
        bytes_share: What a move costs: 0 counts moves, 1 bytes, between them both (a replica of the
            average size costs 1 in any case).
        max_replicas: Replicas that one broker may have (ReplicaCapacityGoal); None: any number.
        drained: Ids of brokers that are to have no replica.
        excluded: Ids of brokers that get no new replica, and keep those that they have.
        pinned: Topics that stay as they are.
        replication_factor: New replication factors, by topic.
        min_leaders: By topic, partitions of it that each broker is to lead at least
            (MinTopicLeadersPerBrokerGoal). Brokers that are excluded or drained need not.
    """

    names: tuple[str, ...] = DEFAULT_GOALS
    replica_balance: float = 1.10
    leader_balance: float = 1.10
    resource_balance: float = 1.10
    topic_balance: float = 3.0
    capacity_threshold: float = 0.8
    bytes_share: float = 0.0
    max_replicas: int | None = None
    drained: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    pinned: tuple[str, ...] = ()
    replication_factor: Mapping[str, int] = field(default_factory=dict)
    min_leaders: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in ALL_GOALS:
                raise InvalidInputError(f"goal {name!r} is unknown: choose of {list(ALL_GOALS)}")
            if self.names.count(name) > 1:
                raise InvalidInputError(f"goal {name} is named twice: name it where it belongs")
        for what, value in (
            ("replica balance", self.replica_balance),
            ("leader balance", self.leader_balance),
            ("resource balance", self.resource_balance),
            ("topic balance", self.topic_balance),
        ):
            if not (math.isfinite(value) and 1 <= value <= 100):
                raise InvalidInputError(
                    f"{what} {value} is no threshold: 1.10 means within 10 % of the average"
                )
        for what, value in (
            ("capacity threshold", self.capacity_threshold),
            ("share of bytes in the cost", self.bytes_share),
        ):
            if not 0 <= value <= 1:
                raise InvalidInputError(f"{what} {value}: give a number from 0 to 1")
        if self.max_replicas is not None and self.max_replicas < 1:
            raise InvalidInputError(f"max replicas {self.max_replicas}: at least 1")
        self._check_factors()
        self._check_min_leaders()

    def _check_factors(self) -> None:
        for topic, factor in self.replication_factor.items():
            if factor < 1:
                raise InvalidInputError(f"replication factor {factor} of {topic}: at least 1")
            if topic in self.pinned:
                raise InvalidInputError(
                    f"topic {topic} is pinned, and its replication factor is to be {factor}: "
                    "drop one of the two"
                )

    def _check_min_leaders(self) -> None:
        for topic, leaders in self.min_leaders.items():
            if leaders < 1:
                raise InvalidInputError(f"least leaders {leaders} of {topic}: at least 1")
            if MIN_LEADERS not in self.names:
                raise InvalidInputError(
                    f"topic {topic} is to have {leaders} leaders on each broker, and {MIN_LEADERS} "
                    "is not among the goals: name it, too"
                )
        if len(self.min_leaders) > MAX_TOPICS_WITH_LEADERS:
            raise InvalidInputError(
                f"{len(self.min_leaders)} topics are to have leaders on each broker: name at most "
                f"{MAX_TOPICS_WITH_LEADERS}"
            )

    def has(self, name: str) -> bool:
        """Whether a goal counts."""
        return name in self.names

    @property
    def soft(self) -> tuple[str, ...]:
        """The soft goals, in the order in which they count."""
        return tuple(name for name in self.names if name not in HARD_GOALS)

    @property
    def weighted(self) -> bool:
        """Whether a plan has to be searched, as counts are not all that matters."""
        return self.bytes_share > 0 or any(name in WEIGHTED_GOALS for name in self.names)


TOPIC_GAP = (2, 40)
"""Fewest and most replicas of a topic that a broker may be off its average by."""


def balance_margin(threshold: float) -> Fraction:
    """How far from the average a broker may be, as a share of it: 0.09 for 1.10."""
    return (Fraction(str(threshold)) - 1) * Fraction(str(BALANCE_MARGIN))


def usage_limits(
    total: int, capacities: Sequence[int], threshold: float
) -> tuple[list[int], list[int]]:
    """Least and most load of each broker: ResourceDistributionGoal's limits.

    Every broker is to use its capacity as much as all of them together do.
    """
    margin, whole = balance_margin(threshold), max(1, sum(capacities))
    fair = [Fraction(total * capacity, whole) for capacity in capacities]
    least = [math.floor(load * max(Fraction(0), 1 - margin)) for load in fair]
    return least, [math.ceil(load * (1 + margin)) for load in fair]


@functools.lru_cache(maxsize=1 << 16)
def topic_limits(total: int, brokers: int, threshold: float) -> tuple[int, int]:
    """Fewest and most replicas of a topic on a broker: TopicReplicaDistributionGoal's limits.

    Thousands of topics have few different numbers of replicas, and fractions take their time.
    """
    if brokers == 0:
        return 0, 0
    average = Fraction(total, brokers)
    gap = min(
        max(average * balance_margin(threshold), Fraction(TOPIC_GAP[0])), Fraction(TOPIC_GAP[1])
    )
    return math.floor(max(Fraction(0), average - gap)), math.ceil(average + gap)


def balance_limits(total: int, brokers: int, threshold: float) -> tuple[int, int]:
    """Fewest and most of a thing that a broker may have: ReplicaDistributionAbstractGoal's limits.

    With a threshold of 1.10: floor(0.91 average) and ceil(1.09 average).
    """
    if brokers == 0:
        return 0, 0
    margin = balance_margin(threshold)
    average = Fraction(total, brokers)
    return math.floor(average * max(Fraction(0), 1 - margin)), math.ceil(average * (1 + margin))
