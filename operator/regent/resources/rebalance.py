"""What ``spec.rebalance`` of a PartitionReassignment asks for: goals, and what is given.

Names and thresholds are those of ``regent plan`` (docs/planner.md), which are Cruise Control's.
"""

from __future__ import annotations

import enum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.kafka_topic import BrokerId
from regent.resources.kind import Cel
from regent.resources.rebalance_history import RebalanceHistory
from regent.resources.rebalance_spark import RebalanceSpark

MAX_BROKERS: Final = 1000
MAX_PINNED_TOPICS: Final = 1000
MAX_TOPICS_WITH_LEADERS: Final = 50

TopicName = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]


class Goal(enum.StrEnum):
    """Goals of the planner. The hard ones, without which there is no plan, come first."""

    RACK_AWARE = "RackAwareGoal"
    MIN_TOPIC_LEADERS_PER_BROKER = "MinTopicLeadersPerBrokerGoal"
    REPLICA_CAPACITY = "ReplicaCapacityGoal"
    DISK_CAPACITY = "DiskCapacityGoal"
    REPLICA_DISTRIBUTION = "ReplicaDistributionGoal"
    LEADER_REPLICA_DISTRIBUTION = "LeaderReplicaDistributionGoal"
    DISK_USAGE_DISTRIBUTION = "DiskUsageDistributionGoal"
    NETWORK_INBOUND_USAGE_DISTRIBUTION = "NetworkInboundUsageDistributionGoal"
    NETWORK_OUTBOUND_USAGE_DISTRIBUTION = "NetworkOutboundUsageDistributionGoal"
    TOPIC_REPLICA_DISTRIBUTION = "TopicReplicaDistributionGoal"


class Rebalance(ApiModel):
    """What the cluster shall be like; the planner chooses the fewest moves."""

    cel_rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "has(self.history) || !has(self.goals) || "
            "!self.goals.exists(goal, goal.startsWith('Network'))",
            "goals of networks need history: a snapshot has no rates",
        ),
    )

    goals: tuple[Goal, ...] = Field(
        default=(),
        description="Goals that count. Default: those of racks and of the numbers of replicas and "
        "leaders. RackAwareGoal, MinTopicLeadersPerBrokerGoal and those of capacities are hard: "
        "without them there is no plan. The others are met as far as they can be; one counts more "
        "than those after it. Those of networks need history.",
        max_length=len(Goal),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    replica_balance_percent: int = Field(
        default=110,
        description="Threshold of ReplicaDistributionGoal: with 110 brokers have between 91 and "
        "109 percent of the average (the margin is 0.9).",
        ge=100,
        le=10_000,
    )
    leader_balance_percent: int = Field(
        default=110,
        description="The same for LeaderReplicaDistributionGoal.",
        ge=100,
        le=10_000,
    )
    max_replicas_per_broker: int | None = Field(
        default=None,
        description="Replicas that one broker may have (ReplicaCapacityGoal). Default: any number.",
        ge=1,
        le=10_000_000,
    )
    drained_brokers: tuple[BrokerId, ...] = Field(
        default=(),
        description="Ids of brokers that shall have no replica. They need not be alive.",
        max_length=MAX_BROKERS,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    excluded_brokers: tuple[BrokerId, ...] = Field(
        default=(),
        description="Ids of brokers that get no new replica, and keep those that they have.",
        max_length=MAX_BROKERS,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    pinned_topics: tuple[TopicName, ...] = Field(
        default=(),
        description="Topics that stay as they are.",
        max_length=MAX_PINNED_TOPICS,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    min_topic_leaders_per_broker: dict[str, Annotated[int, Field(ge=1, le=10_000)]] = Field(
        default={},
        description="How many partitions of topics each broker shall lead at least "
        "(MinTopicLeadersPerBrokerGoal), by topic; brokers that are drained or excluded need not.",
        max_length=MAX_TOPICS_WITH_LEADERS,
    )
    spark: RebalanceSpark | None = Field(
        default=None,
        description="The SparkApplication that makes the plan. Default: a process beside Regent.",
    )
    history: RebalanceHistory | None = Field(
        default=None,
        description="Sizes and rates are taken from the history that Regent's setting "
        "planner_history names. Without a history that is new enough nothing is planned. Default: "
        "what brokers have at the moment.",
    )
