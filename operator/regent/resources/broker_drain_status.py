"""What Regent reports about a BrokerDrain."""

from __future__ import annotations

import enum
from typing import Final

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.conditions import Condition, Rfc3339
from regent.resources.partition_reassignment_status import MoveSample, Progress, StoredPlan
from regent.resources.resource_status import ResourceStatus, conditions_field

MAX_BLOCKERS: Final = 100
MAX_SAMPLE: Final = 50


class DrainPhase(enum.StrEnum):
    """Where a drain is, for people. Programs read the conditions."""

    PENDING = "Pending"
    REFUSED = "Refused"
    DRAINING = "Draining"
    VERIFYING = "Verifying"
    DRAINED = "Drained"
    PAUSING = "Pausing"
    PAUSED = "Paused"
    UNDOING = "Undoing"
    UNDONE = "Undone"


class Blocker(ApiModel):
    """Something that keeps the brokers from being drained."""

    reason: str = Field(description="Stable name of the cause, for programs.", max_length=64)
    topic: str = Field(default="", description="Name of the topic, if it is about one.")
    partition: int | None = Field(
        default=None, description="Index of the partition, if it is about one.", ge=0
    )
    message: str = Field(description="What is wrong and what to do about it.", max_length=512)


class Remaining(ApiModel):
    """What the brokers still have."""

    leaders: int = Field(
        description="Partitions that one of them leads, or is preferred for.", ge=0
    )
    replicas: int = Field(description="Replicas on them, also those that are leaving.", ge=0)


class BrokerDrainStatus(ResourceStatus):
    """What Regent last saw and did. Everything but the plan can be rebuilt from the cluster."""

    conditions: tuple[Condition, ...] = conditions_field(
        "Ready, Reconciling and Stalled (kstatus), Cordoned, LeadersMoved, "
        "ReplicasMoved and Drained."
    )
    cluster_id: str | None = Field(
        default=None, description="Id of the Kafka cluster whose brokers are drained."
    )
    phase: DrainPhase | None = Field(default=None, description="Where it is, for people.")
    plan: StoredPlan | None = Field(
        default=None,
        description="What is moved, and where from: what comes to the brokers later is added.",
    )
    progress: Progress | None = Field(default=None, description="How far it is.")
    summary: str | None = Field(default=None, description="Partitions done/in the plan.")
    remaining: Remaining | None = Field(default=None, description="What the brokers still have.")
    started_at: Rfc3339 | None = Field(default=None, description="When the first move began.")
    finished_at: Rfc3339 | None = Field(
        default=None, description="When the brokers were drained, the last time."
    )
    blockers: tuple[Blocker, ...] = Field(
        default=(),
        description="Everything that keeps the brokers from being drained; the first ones if many.",
        max_length=MAX_BLOCKERS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    partitions: tuple[MoveSample, ...] = Field(
        default=(),
        description="A sample of the partitions that are not done: those with problems first.",
        max_length=MAX_SAMPLE,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    controller_epoch: int | None = Field(
        default=None,
        description="Epoch of the Kafka controller that last changed this status.",
        ge=0,
    )
