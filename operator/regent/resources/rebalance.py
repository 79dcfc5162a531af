"""What ``spec.rebalance`` of a PartitionReassignment asks for: goals, and what is given.

Names and thresholds are those of ``regent plan`` (docs/planner.md), which are Cruise Control's.
"""

from __future__ import annotations

import enum
from typing import Annotated, Final

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.kafka_topic import BrokerId

MAX_BROKERS: Final = 1000
MAX_PINNED_TOPICS: Final = 1000

TopicName = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]


class Goal(enum.StrEnum):
    """Goals of the planner. The first two are hard: without them there is no plan."""

    RACK_AWARE = "RackAwareGoal"
    REPLICA_CAPACITY = "ReplicaCapacityGoal"
    REPLICA_DISTRIBUTION = "ReplicaDistributionGoal"
    LEADER_REPLICA_DISTRIBUTION = "LeaderReplicaDistributionGoal"


class Rebalance(ApiModel):
    """What the cluster shall be like; the planner chooses the fewest moves."""

    goals: tuple[Goal, ...] = Field(
        default=(),
        description="Goals that count. Default: all. RackAwareGoal and ReplicaCapacityGoal are "
        "hard: without them there is no plan. The others are met as far as they can be.",
        max_length=len(Goal),
        json_schema_extra={"x-kubernetes-list-type": "set"},
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
