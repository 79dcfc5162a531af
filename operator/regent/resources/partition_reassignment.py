"""The custom resource PartitionReassignment.

It is a job, no state that is kept: once it is completed, nothing is done for it any more. What is
to be moved is immutable: what was reviewed is what is executed.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, ValidationError

from regent.resources.base import (
    CLUSTER_REF_IS_IMMUTABLE,
    ApiModel,
    ClusterRef,
    CustomResource,
    ObjectMeta,
)
from regent.resources.conditions import ConditionType
from regent.resources.kafka_topic import ReplicaList
from regent.resources.kafka_topic_status import MAX_REPLICAS
from regent.resources.kind import (
    CLUSTER_COLUMN,
    MESSAGE_COLUMN,
    MOVE_COLUMNS,
    SUMMARY_COLUMNS,
    Cel,
    PrinterColumn,
    ResourceKind,
)
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus
from regent.resources.rebalance import Rebalance
from regent.resources.status_reading import first_problem, read_status

MAX_ASSIGNMENTS: Final = 5000
MAX_PLAN_JSON_LENGTH: Final = 500_000
MAX_TOPICS: Final = 1000
DEFAULT_UNDO_WINDOW_S: Final = 24 * 60 * 60
MAX_PERIOD_S: Final = 366 * 24 * 60 * 60
MIN_BYTES_PER_SECOND: Final = 1024
"""Kafka takes less. It is refused as a value that was meant in another unit."""

_RECORD: Final = frozenset({"clusterId", "plan", "startedAt", "undoStartedAt", "finishedAt"})
"""Fields of a status that nothing else says."""

SOURCES: Final = ("assignments", "planJSON", "replicationFactor", "rebalance")
"""Fields that say what is to be moved, exactly one of which is set."""


class ApprovalPolicy(enum.StrEnum):
    """Who says that a plan may be executed."""

    MANUAL = "Manual"
    LIMITS = "Limits"
    AUTOMATIC = "Automatic"


class DesiredState(enum.StrEnum):
    """What shall become of the reassignment."""

    RUNNING = "Running"
    PAUSED = "Paused"
    CANCELLED = "Cancelled"
    UNDONE = "Undone"


class DriftPolicy(enum.StrEnum):
    """What happens if a partition is not where the plan has it."""

    STOP = "Stop"
    SKIP = "Skip"


class RackPolicy(enum.StrEnum):
    """Whether a partition may be spread over fewer racks than before."""

    KEEP = "Keep"
    IGNORE = "Ignore"


class PartitionAssignment(ApiModel):
    """Where the replicas of one partition shall be."""

    topic: str = Field(
        description="Name of the topic.",
        min_length=1,
        max_length=249,
        pattern=r"^[a-zA-Z0-9._-]+$",
    )
    partition: int = Field(description="Index of the partition.", ge=0, le=2**31 - 1)
    replicas: ReplicaList


class ApprovalLimits(ApiModel):
    """Up to which size a plan needs nobody's approval. What is left out is not limited."""

    partitions: int | None = Field(
        default=None, description="Partitions that are changed.", ge=0, le=10_000_000
    )
    replica_moves: int | None = Field(
        default=None,
        description="Replicas that are copied to another broker.",
        ge=0,
        le=10_000_000,
    )
    leader_changes: int | None = Field(
        default=None,
        description="Partitions that get another preferred leader.",
        ge=0,
        le=10_000_000,
    )


class Approval(ApiModel):
    """Under which condition a plan is executed."""

    policy: ApprovalPolicy = Field(
        default=ApprovalPolicy.MANUAL,
        description="Manual: planHash has to name the plan. Limits: so it has, unless the plan is "
        "within the limits. Automatic: every valid plan is executed.",
    )
    plan_hash: str | None = Field(
        default=None,
        description="Hash of the plan that is approved (status.plan.hash). If it is set, no other "
        "plan is executed, whatever the policy.",
        min_length=71,
        max_length=71,
        pattern=r"^sha256:[0-9a-f]{64}$",
    )
    limits: ApprovalLimits = Field(
        default_factory=ApprovalLimits, description="For the policy Limits."
    )


class Concurrency(ApiModel):
    """How much is moved at the same time. Whatever else moves in the cluster counts, too."""

    per_broker: int = Field(
        default=5,
        description="Replicas that a broker receives, or sends as the leader, at the same time.",
        ge=1,
        le=1000,
    )
    total: int = Field(
        default=50, description="Partitions that move at the same time.", ge=1, le=100_000
    )
    per_partition_one_by_one: bool = Field(
        default=False,
        description="Whether a partition gets its new replicas one after the other.",
    )


class Throttle(ApiModel):
    """To how much the copies are throttled (KIP-73)."""

    bytes_per_second: int = Field(
        description="Bytes a second that a broker receives, and sends as the leader, for all "
        "partitions of throttled reassignments together. Where several resources move replicas at "
        "the same broker the lowest value counts. It has to be more than what producers write to "
        "these partitions: else the copies never get in sync.",
        ge=MIN_BYTES_PER_SECOND,
        le=2**53,
    )


class PartitionReassignmentSpec(ApiModel):
    """What is moved, and how."""

    cel_rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            f"[{', '.join(f'has(self.{source})' for source in SOURCES)}]"
            ".filter(given, given).size() == 1",
            f"set exactly one of {', '.join(SOURCES)}",
        ),
    )

    assignments: tuple[PartitionAssignment, ...] | None = Field(
        default=None,
        description="Where the replicas of partitions shall be. Immutable.",
        min_length=1,
        max_length=MAX_ASSIGNMENTS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    plan_json: str | None = Field(
        default=None,
        alias="planJSON",
        description="The same in the format of kafka-reassign-partitions. Immutable.",
        min_length=2,
        max_length=MAX_PLAN_JSON_LENGTH,
    )
    replication_factor: dict[str, Annotated[int, Field(ge=1, le=MAX_REPLICAS)]] | None = Field(
        default=None,
        description="How many replicas the partitions of topics shall have, by topic; Regent "
        "chooses the brokers. Immutable.",
        min_length=1,
        max_length=MAX_TOPICS,
    )
    rebalance: Rebalance | None = Field(
        default=None,
        description="Goals for the whole cluster; the planner (regent[planner]) chooses what is "
        "moved. Immutable.",
    )
    approval: Approval = Field(
        default_factory=Approval, description="Under which condition the plan is executed."
    )
    desired_state: DesiredState = Field(
        default=DesiredState.RUNNING,
        description="Running: the plan is executed. Paused: nothing more is begun; what is on its "
        "way arrives. Cancelled: what is on its way goes back to where it was. Undone: everything "
        "that it has moved does.",
    )
    undo_window_seconds: int = Field(
        default=DEFAULT_UNDO_WINDOW_S,
        description="For how long it can be undone after it was completed. Then its moves are "
        "removed from the status.",
        ge=0,
        le=MAX_PERIOD_S,
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        description="It is deleted so many seconds after it was completed or undone. Default: it "
        "stays.",
        ge=0,
        le=MAX_PERIOD_S,
    )
    concurrency: Concurrency = Field(
        default_factory=Concurrency, description="How much is moved at the same time."
    )
    throttle: Throttle | None = Field(
        default=None,
        description="To how much the copies are throttled. It can be set, changed and removed "
        "while they are under way. Default: not at all.",
    )
    on_drift: DriftPolicy = Field(
        default=DriftPolicy.STOP,
        description="What happens if somebody else has moved, deleted or recreated a partition of "
        "the plan. Stop: nothing more is begun. Skip: the others are moved.",
    )
    racks: RackPolicy = Field(
        default=RackPolicy.KEEP,
        description="Keep: a plan that spreads a partition over fewer racks than before is "
        "refused. Ignore: it is not.",
    )
    cluster_ref: ClusterRef | None = Field(
        default=None,
        description="Which Regent serves this resource, by the name of its Kafka cluster. Default: "
        "the one that serves resources that name none. Immutable once set.",
    )


class PartitionReassignment(CustomResource):
    """A change of the replicas of partitions."""

    kind: ClassVar[ResourceKind] = ResourceKind(
        kind="PartitionReassignment",
        plural="partitionreassignments",
        short_names=("reassignment",),
        description="PartitionReassignment moves replicas of partitions to other brokers.",
        columns=(
            PrinterColumn("Phase", "string", ".status.phase"),
            PrinterColumn("Progress", "string", ".status.summary", "Partitions done/in the plan"),
            *SUMMARY_COLUMNS,
            PrinterColumn("Percent", "integer", ".status.progress.percent", wide=True),
            PrinterColumn("Copies", "integer", ".status.plan.replicaMoves", wide=True),
            *MOVE_COLUMNS,
            CLUSTER_COLUMN,
            MESSAGE_COLUMN,
        ),
        conditions=(
            ConditionType.READY,
            ConditionType.RECONCILING,
            ConditionType.STALLED,
            ConditionType.PLAN_READY,
            ConditionType.APPROVED,
            ConditionType.EXECUTING,
            ConditionType.COMPLETED,
        ),
    )
    cel_rules: ClassVar[tuple[Cel, ...]] = (
        *(
            Cel(
                f"has(self.spec.{source}) == has(oldSelf.spec.{source}) && "
                f"(!has(self.spec.{source}) || self.spec.{source} == oldSelf.spec.{source})",
                f"{source} is immutable: create another PartitionReassignment for other moves",
                field_path=f".spec.{source}",
            )
            for source in SOURCES
        ),
        CLUSTER_REF_IS_IMMUTABLE,
    )

    spec: PartitionReassignmentSpec
    status: PartitionReassignmentStatus = Field(default=PartitionReassignmentStatus())


@dataclass(frozen=True, slots=True)
class UnreadableReassignment:
    """A PartitionReassignment whose spec this Regent cannot read.

    Attributes:
        field: The first field concerned. If it is one of ``status``, what was stored must be kept.
        problem: What is wrong with it, as a sentence.
    """

    metadata: ObjectMeta
    status: PartitionReassignmentStatus
    field: str
    problem: str


def parse_partition_reassignment(
    body: Mapping[str, Any],
) -> PartitionReassignment | UnreadableReassignment:
    """Read an object of the API. What cannot be read of a status, see :func:`read_status`.

    Raises:
        pydantic.ValidationError: If not even the metadata can be read.
    """
    metadata = ObjectMeta.model_validate(body["metadata"])
    status, problem = read_status(
        PartitionReassignmentStatus, body.get("status") or {}, record=_RECORD
    )
    if problem is not None:
        return UnreadableReassignment(metadata, status, *problem)
    try:
        spec = PartitionReassignmentSpec.model_validate(body.get("spec"))
    except ValidationError as error:
        return UnreadableReassignment(metadata, status, *first_problem("spec", error))
    given = [source for source in SOURCES if body["spec"].get(source) is not None]
    if len(given) != 1:
        message = (
            f"set exactly one of {', '.join(SOURCES)}; if that is so in the manifest, the "
            "CustomResourceDefinition is older than this Regent and drops it: `regent crds | "
            "kubectl apply -f -` updates it, then apply the resource again"
        )
        return UnreadableReassignment(metadata, status, "spec", message)
    return PartitionReassignment(metadata=metadata, spec=spec, status=status)
