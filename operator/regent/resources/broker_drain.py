"""The custom resource BrokerDrain.

It is a wish that holds as long as the resource is there: what comes to the brokers although they
are cordoned is moved off again.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pydantic import Field, ValidationError

from regent.resources.base import (
    CLUSTER_REF_IS_IMMUTABLE,
    ApiModel,
    ClusterRef,
    CustomResource,
    ObjectMeta,
)
from regent.resources.broker_drain_status import BrokerDrainStatus
from regent.resources.conditions import ConditionType
from regent.resources.kafka_topic import BrokerId
from regent.resources.kind import (
    CLUSTER_COLUMN,
    MESSAGE_COLUMN,
    MOVE_COLUMNS,
    SUMMARY_COLUMNS,
    Cel,
    PrinterColumn,
    ResourceKind,
)
from regent.resources.partition_reassignment import RackPolicy, Throttle
from regent.resources.status_reading import first_problem, read_status

MAX_BROKERS: Final = 100

_RECORD: Final = frozenset({"clusterId", "plan", "startedAt"})
"""Fields of a status that nothing else says."""


class DrainMode(enum.StrEnum):
    """What leaves the brokers."""

    LEADERSHIP = "Leadership"
    REPLICAS = "Replicas"


class DesiredDrainState(enum.StrEnum):
    """What shall become of the drain."""

    DRAINED = "Drained"
    PAUSED = "Paused"
    UNDONE = "Undone"


class DrainConcurrency(ApiModel):
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


class BrokerDrainSpec(ApiModel):
    """Which brokers are drained, of what, and how."""

    brokers: tuple[BrokerId, ...] = Field(
        description="Ids of the brokers. They need not be alive. Immutable.",
        min_length=1,
        max_length=MAX_BROKERS,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    mode: DrainMode = Field(
        default=DrainMode.REPLICAS,
        description="Replicas: no replica stays on the brokers. Leadership: they lead nothing, and "
        "can be stopped without harm; replicas stay. Immutable.",
    )
    desired_state: DesiredDrainState = Field(
        default=DesiredDrainState.DRAINED,
        description="Drained: the brokers are cordoned and drained. Paused: nothing more is begun; "
        "what is on its way arrives, the brokers stay cordoned. Undone: what was moved goes back, "
        "and the brokers are not cordoned any more.",
    )
    racks: RackPolicy = Field(
        default=RackPolicy.KEEP,
        description="Keep: the drain is refused if a partition would be spread over fewer racks "
        "than before. Ignore: it is not.",
    )
    concurrency: DrainConcurrency = Field(
        default_factory=DrainConcurrency, description="How much is moved at the same time."
    )
    throttle: Throttle | None = Field(
        default=None,
        description="To how much the copies are throttled. It can be changed while partitions "
        "move. Default: they are not.",
    )
    timeout_seconds: int | None = Field(
        default=None,
        description="After so many seconds the resource is Stalled unless it is drained. The drain "
        "goes on all the same. Default: never.",
        ge=1,
        le=31_536_000,
    )
    cluster_ref: ClusterRef | None = Field(
        default=None,
        description="Which Regent serves this resource, by the name of its Kafka cluster. Default: "
        "the one that serves resources that name none. Immutable once set.",
    )


class BrokerDrain(CustomResource):
    """Brokers that are to be without leaders, or without replicas."""

    kind: ClassVar[ResourceKind] = ResourceKind(
        kind="BrokerDrain",
        plural="brokerdrains",
        short_names=("drain",),
        description="BrokerDrain moves leaders, or all replicas, off brokers and keeps them off.",
        columns=(
            PrinterColumn("Brokers", "string", ".spec.brokers"),
            PrinterColumn("Mode", "string", ".spec.mode"),
            PrinterColumn("Phase", "string", ".status.phase"),
            PrinterColumn("Progress", "string", ".status.summary", "Partitions done/in the plan"),
            PrinterColumn("Leaders", "integer", ".status.remaining.leaders", "Partitions led"),
            PrinterColumn("Replicas", "integer", ".status.remaining.replicas", "Replicas hosted"),
            *SUMMARY_COLUMNS,
            *MOVE_COLUMNS,
            CLUSTER_COLUMN,
            MESSAGE_COLUMN,
        ),
        conditions=(
            ConditionType.READY,
            ConditionType.RECONCILING,
            ConditionType.STALLED,
            ConditionType.CORDONED,
            ConditionType.LEADERS_MOVED,
            ConditionType.REPLICAS_MOVED,
            ConditionType.DRAINED,
        ),
    )
    cel_rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "self.spec.brokers == oldSelf.spec.brokers",
            "brokers is immutable: create another BrokerDrain for other brokers",
            field_path=".spec.brokers",
        ),
        Cel(
            "self.spec.mode == oldSelf.spec.mode",
            "mode is immutable: delete the BrokerDrain, and create it with the other mode",
            field_path=".spec.mode",
        ),
        CLUSTER_REF_IS_IMMUTABLE,
    )

    spec: BrokerDrainSpec
    status: BrokerDrainStatus = Field(default=BrokerDrainStatus())


@dataclass(frozen=True, slots=True)
class UnreadableDrain:
    """A BrokerDrain that this Regent cannot read.

    Attributes:
        field: The first field concerned. If it is one of ``status``, what was stored must be kept.
        problem: What is wrong with it, as a sentence.
    """

    metadata: ObjectMeta
    status: BrokerDrainStatus
    field: str
    problem: str


def parse_broker_drain(body: Mapping[str, Any]) -> BrokerDrain | UnreadableDrain:
    """Read an object of the API. What cannot be read of a status, see :func:`read_status`.

    Raises:
        pydantic.ValidationError: If not even the metadata can be read.
    """
    metadata = ObjectMeta.model_validate(body["metadata"])
    status, problem = read_status(BrokerDrainStatus, body.get("status") or {}, record=_RECORD)
    if problem is not None:
        return UnreadableDrain(metadata, status, *problem)
    try:
        spec = BrokerDrainSpec.model_validate(body.get("spec"))
    except ValidationError as error:
        return UnreadableDrain(metadata, status, *first_problem("spec", error))
    return BrokerDrain(metadata=metadata, spec=spec, status=status)
