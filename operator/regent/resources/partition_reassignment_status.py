"""What Regent reports about a PartitionReassignment."""

from __future__ import annotations

import enum
from typing import Annotated, Final

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.conditions import Condition, Rfc3339
from regent.resources.kafka_topic_status import MAX_REPLICAS
from regent.resources.resource_status import ResourceStatus, conditions_field

MAX_DOCUMENT_LENGTH: Final = 400_000
"""Longest plan document in characters: an object of the API server takes 1.5 MB."""

MAX_PROBLEMS: Final = 100
MAX_SAMPLE: Final = 50
MAX_REMARKS: Final = 20
MAX_UNMET_GOALS: Final = 8


class Phase(enum.StrEnum):
    """Where a reassignment is, for people. Programs read the conditions."""

    PENDING = "Pending"
    INVALID = "Invalid"
    AWAITING_APPROVAL = "AwaitingApproval"
    EXECUTING = "Executing"
    PAUSING = "Pausing"
    PAUSED = "Paused"
    STOPPED = "Stopped"
    CANCELLING = "Cancelling"
    CANCELLED = "Cancelled"
    INCOMPLETE = "Incomplete"
    COMPLETED = "Completed"
    UNDOING = "Undoing"
    UNDONE = "Undone"
    UNDO_REFUSED = "UndoRefused"


class StoredPlan(ApiModel):
    """The plan that is executed, and nothing else is."""

    hash: str = Field(
        description='"sha256:" and 64 digits. Who approves it approves exactly these moves.',
        max_length=80,
    )
    partitions: int = Field(description="Partitions that are changed.", ge=0)
    replica_moves: int = Field(description="Replicas that are copied to another broker.", ge=0)
    leader_changes: int = Field(description="Partitions that get another preferred leader.", ge=0)
    document: str = Field(
        default="",
        description="The moves: partitions with their replicas before and their target, as JSON, "
        "compressed (zlib) and in base64. It is removed when it cannot be undone any more.",
        max_length=MAX_DOCUMENT_LENGTH,
    )


class UnmetGoal(ApiModel):
    """A soft goal that the plan does not meet."""

    goal: str = Field(description="Name of the goal.", max_length=64)
    reason: str = Field(description="Why, as the planner says it.", max_length=512)


class RebalanceStatus(ApiModel):
    """What the planner says of a plan for spec.rebalance."""

    bytes: int = Field(description="Bytes that are copied, as far as sizes are known.", ge=0)
    leader_changes: int = Field(description="Partitions that get another leader.", ge=0)
    lower_bound: int = Field(
        description="No plan that comes as close to the goals copies fewer replicas.", ge=0
    )
    unmet_goals: tuple[UnmetGoal, ...] = Field(
        default=(),
        description="Soft goals that the plan does not meet.",
        max_length=MAX_UNMET_GOALS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    remarks: tuple[Annotated[str, Field(max_length=512)], ...] = Field(
        default=(),
        description="What the snapshot lacked that the plan was made from, such as sizes that a "
        "broker did not tell; the first ones if many.",
        max_length=MAX_REMARKS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class Progress(ApiModel):
    """How many partitions are where."""

    total: int = Field(description="Partitions of the plan.", ge=0)
    done: int = Field(default=0, description="Partitions with the replicas of the plan.", ge=0)
    running: int = Field(default=0, description="Partitions on their way.", ge=0)
    pending: int = Field(default=0, description="Partitions that have not begun.", ge=0)
    blocked: int = Field(
        default=0, description="Partitions that something else is moving at the moment.", ge=0
    )
    drifted: int = Field(
        default=0,
        description="Partitions that are neither where they were nor on the way of the plan.",
        ge=0,
    )
    percent: int = Field(default=0, description="Of the partitions that are done.", ge=0, le=100)
    bytes_total: int | None = Field(
        default=None,
        description="Bytes of all copies of the plan: as many as their leaders have now. Absent if "
        "not known.",
        ge=0,
    )
    bytes_copied: int | None = Field(
        default=None, description="Bytes of them that are there. Absent if not known.", ge=0
    )
    bytes_per_second: int | None = Field(
        default=None,
        description="Bytes a second that all copies of the plan together got in the last minute.",
        ge=0,
    )
    estimated_end: Rfc3339 | None = Field(
        default=None, description="When they are there, if they go on at this rate."
    )
    bytes_unknown: str | None = Field(
        default=None, description="Why the bytes are not known.", max_length=512
    )


class MoveSample(ApiModel):
    """One partition of the plan."""

    topic: str = Field(description="Name of the topic.")
    partition: int = Field(description="Index of the partition.", ge=0)
    state: str = Field(description="Running, Pending, Blocked or Drifted.")
    replicas: tuple[int, ...] = Field(
        default=(),
        description="Broker ids of its replicas now.",
        max_length=MAX_REPLICAS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    target: tuple[int, ...] = Field(
        description="Broker ids of its replicas in the plan.",
        max_length=MAX_REPLICAS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    message: str = Field(default="", description="What keeps it from going on.", max_length=256)


class Problem(ApiModel):
    """Something that is wrong with the resource or in its way."""

    reason: str = Field(description="Stable name of the cause, for programs.", max_length=64)
    field: str = Field(default="", description="Field of spec concerned.", max_length=256)
    message: str = Field(description="What is wrong and what to do about it.", max_length=512)


class PartitionReassignmentStatus(ResourceStatus):
    """What Regent last saw and did. Everything but the plan, and when something began and ended,
    can be rebuilt from the cluster."""

    conditions: tuple[Condition, ...] = conditions_field(
        "Ready, Reconciling and Stalled (kstatus), PlanReady, Approved, Executing and Completed."
    )
    cluster_id: str | None = Field(
        default=None, description="Id of the Kafka cluster that the plan is for."
    )
    phase: Phase | None = Field(default=None, description="Where it is, for people.")
    plan: StoredPlan | None = Field(default=None, description="The plan, once there is one.")
    rebalance: RebalanceStatus | None = Field(
        default=None, description="What the planner says of the plan, if it has made it."
    )
    progress: Progress | None = Field(default=None, description="How far it is.")
    summary: str | None = Field(default=None, description="Partitions done/in the plan.")
    started_at: Rfc3339 | None = Field(
        default=None,
        description="When the execution began. From then on this plan is executed and no other.",
    )
    undo_started_at: Rfc3339 | None = Field(
        default=None,
        description="When its undoing began. From then on the plan is executed in reverse.",
    )
    finished_at: Rfc3339 | None = Field(
        default=None, description="When it was completed, or undone."
    )
    problems: tuple[Problem, ...] = Field(
        default=(),
        description="Everything that keeps it from being planned; the first ones if many.",
        max_length=MAX_PROBLEMS,
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

    @property
    def begun_at(self) -> str | None:
        """When what is being executed began: the plan, or its undoing."""
        return self.undo_started_at or self.started_at
