"""The custom resource KafkaTopic.

Rules that need only the resource itself are CEL rules here: the API server refuses a mistake when
it is made, even while Regent is down. Rules that need the cluster are checks in
``regent.reconcile``. Every list and text is bounded: that keeps the estimated cost of the rules
within the API server's budget, and the objects small.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, ValidationError

from regent.model.topic import MAX_PARTITIONS
from regent.resources.base import (
    CLUSTER_REF_IS_IMMUTABLE,
    ApiModel,
    ClusterRef,
    CustomResource,
    ObjectMeta,
)
from regent.resources.conditions import ConditionType
from regent.resources.kafka_topic_status import (
    MAX_CONFIG_KEYS,
    MAX_REPLICAS,
    DeletionPolicy,
    KafkaTopicStatus,
)
from regent.resources.kind import (
    CLUSTER_COLUMN,
    MESSAGE_COLUMN,
    SUMMARY_COLUMNS,
    Cel,
    PrinterColumn,
    ResourceKind,
)
from regent.resources.status_reading import read_status

FINALIZER: Final = "kafka.regent.dev/topic"
"""Keeps a resource until its topic is deleted, or while its topic protects it."""

ConfigValue = str | int | float | bool | None
"""A configuration value as people write it in YAML; None: hands off."""


class AdoptionPolicy(enum.StrEnum):
    """What happens if the topic existed before its resource."""

    ADOPT = "Adopt"
    PREVIEW = "Preview"
    REFUSE = "Refuse"


class ForeignDeletionPolicy(enum.StrEnum):
    """What happens if somebody else deletes the topic."""

    ALERT = "Alert"
    RECREATE = "Recreate"


class ManagementPolicy(enum.StrEnum):
    """Whether Regent may write."""

    MANAGED = "Managed"
    PAUSED = "Paused"
    OBSERVE = "Observe"


BrokerId = Annotated[int, Field(ge=0, le=2**31 - 1)]
ConfigKey = Annotated[str, Field(min_length=1, max_length=100)]
ReplicaList = Annotated[
    tuple[BrokerId, ...],
    Field(
        min_length=1,
        max_length=MAX_REPLICAS,
        description="Broker ids of one partition's replicas, the preferred leader first.",
        # A set: the API server refuses a broker that occurs twice.
        json_schema_extra={"x-kubernetes-list-type": "set"},
    ),
]


class KafkaTopicSpec(ApiModel):
    """What the topic shall look like."""

    cel_rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "!has(self.replicas) || !has(self.replicaAssignment)",
            "set replicas or replicaAssignment, not both",
        ),
        Cel(
            "!has(self.replicaAssignment) || !has(self.partitions) || "
            "size(self.replicaAssignment) == self.partitions",
            "replicaAssignment must list the replicas of every partition: as many entries as "
            "partitions",
            field_path=".replicaAssignment",
        ),
    )

    topic_name: str | None = Field(
        default=None,
        description="Name of the topic in Kafka. Default: metadata.name. Immutable.",
        min_length=1,
        max_length=249,
        pattern=r"^[a-zA-Z0-9._-]+$",
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self != '.' && self != '..'",
                    "message": "'.' and '..' are reserved; choose another name",
                }
            ]
        },
    )
    partitions: int | None = Field(
        default=None,
        description="Number of partitions. It can grow but never shrink: Kafka cannot remove "
        "partitions. As long as the topic has fewer, it can be corrected. Default: as many as "
        "replicaAssignment has entries; without one, a topic that exists keeps what it has, and a "
        "new one gets the brokers' num.partitions.",
        ge=1,
        le=MAX_PARTITIONS,
    )
    replicas: int | None = Field(
        default=None,
        description="Replicas of each partition, placed rack-aware by Regent. Another number for "
        "an existing topic reassigns its partitions. Default: a topic that exists keeps what it "
        "has, and a new one gets the brokers' default.replication.factor.",
        ge=1,
        le=MAX_REPLICAS,
    )
    replica_assignment: tuple[ReplicaList, ...] | None = Field(
        default=None,
        description="Replicas of each partition by broker id, in the order of the partitions; "
        "instead of replicas. When partitions grow, the added entries place the new ones.",
        min_length=1,
        max_length=MAX_PARTITIONS,
        json_schema_extra={
            "x-kubernetes-list-type": "atomic",
            "x-kubernetes-validations": [
                {
                    "rule": "self.all(replicas, size(replicas) == size(self[0]))",
                    "message": "every partition must have the same number of replicas",
                }
            ],
        },
    )
    config: Annotated[
        dict[str, ConfigValue], BeforeValidator(lambda given: {} if given is None else given)
    ] = Field(
        default={},
        description="Configuration of the topic: Kafka's keys, for instance retention.ms, with a "
        "string, number or boolean; objects and lists are refused. A key that is removed here is "
        "reset to the cluster's default. null means hands off: the key is neither set nor reset. "
        "Keys not listed are left alone.",
        max_length=MAX_CONFIG_KEYS,
        # What server-side apply makes of {} where there were keys.
        json_schema_extra={"nullable": True},
    )
    hands_off_config: tuple[ConfigKey, ...] = Field(
        default=(),
        description="Configuration keys that are neither set nor reset, even if config lists them: "
        "what null in config means, for tools that drop nulls (kubectl apply without "
        "--server-side, Helm).",
        max_length=MAX_CONFIG_KEYS,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    deletion_policy: DeletionPolicy | None = Field(
        default=None,
        description="What happens to the topic when this resource is deleted. Delete: it is "
        "deleted with all its data. Retain: it stays. Protect: the resource cannot go as long as "
        "the topic exists. Default: Delete if this resource created the topic, Retain if it "
        "adopted it. Internal topics (names that begin with __) are always retained.",
    )
    on_foreign_deletion: ForeignDeletionPolicy = Field(
        default=ForeignDeletionPolicy.ALERT,
        description="What happens if somebody else deletes the topic. Alert: the resource is "
        "stalled and nothing is created until this field says Recreate. Recreate: an empty topic "
        "is created at once.",
    )
    adoption_policy: AdoptionPolicy = Field(
        default=AdoptionPolicy.ADOPT,
        description="What happens if the topic existed before this resource. Adopt: it is taken "
        "over and changed as declared. Preview: the differences are shown, nothing is changed. "
        "Refuse: it is left alone.",
    )
    cluster_id: str | None = Field(
        default=None,
        description="Id of the Kafka cluster that the topic belongs to. In another cluster "
        "nothing is done. Default: the cluster that this resource was first reconciled with. Set "
        "it to the id of another cluster to go on there; what was owned before does not count.",
        min_length=1,
        max_length=256,
    )
    cluster_ref: ClusterRef | None = Field(
        default=None,
        description="Which Regent serves this resource, by the name of its Kafka cluster. Default: "
        "the one that serves resources that name none. Immutable once set.",
    )
    management_policy: ManagementPolicy = Field(
        default=ManagementPolicy.MANAGED,
        description="Managed: the topic is kept as declared. Paused: nothing is written until "
        "further notice. Observe: the resource only watches a topic that somebody else manages.",
    )

    @property
    def partition_count(self) -> int | None:
        """Declared number of partitions, None if neither field says so."""
        if self.partitions is not None:
            return self.partitions
        return len(self.replica_assignment) if self.replica_assignment else None

    @property
    def replication_factor(self) -> int | None:
        """Declared number of replicas of each partition, None if neither field says so."""
        if self.replicas is not None:
            return self.replicas
        return len(self.replica_assignment[0]) if self.replica_assignment else None

    @property
    def desired_config(self) -> dict[str, str]:
        """Configuration to be set, as Kafka's texts, sorted by key."""
        return {
            key: config_value_to_text(value)
            for key, value in sorted(self.config.items())
            if value is not None and key not in self.hands_off_config
        }

    @property
    def hands_off(self) -> frozenset[str]:
        """Keys that are neither set nor reset."""
        nulls = (key for key, value in self.config.items() if value is None)
        return frozenset((*nulls, *self.hands_off_config))


class KafkaTopic(CustomResource):
    """A topic of the Kafka cluster that Regent controls."""

    kind: ClassVar[ResourceKind] = ResourceKind(
        kind="KafkaTopic",
        plural="kafkatopics",
        short_names=("ktopic",),
        description="KafkaTopic declares a topic of the Kafka cluster that Regent controls.",
        columns=(
            PrinterColumn("Partitions", "string", ".status.partitionSummary", "Actual/declared"),
            PrinterColumn("Replicas", "string", ".status.replicaSummary", "Actual/declared"),
            PrinterColumn("URP", "integer", ".status.underReplicated", "Not fully replicated"),
            *SUMMARY_COLUMNS,
            PrinterColumn("Topic", "string", ".status.topicName", wide=True),
            PrinterColumn("Topic-ID", "string", ".status.topicId", wide=True),
            PrinterColumn("Leaderless", "integer", ".status.leaderless", wide=True),
            PrinterColumn(
                "Synced", "string", '.status.conditions[?(@.type=="Synced")].status', wide=True
            ),
            CLUSTER_COLUMN,
            PrinterColumn("Management", "string", ".spec.managementPolicy", wide=True),
            PrinterColumn(
                "Deletion", "string", ".status.deletionPolicy", "Effective policy", wide=True
            ),
            MESSAGE_COLUMN,
        ),
        conditions=(
            ConditionType.READY,
            ConditionType.RECONCILING,
            ConditionType.STALLED,
            ConditionType.SYNCED,
            ConditionType.HEALTHY,
        ),
    )
    cel_rules: ClassVar[tuple[Cel, ...]] = (
        Cel(
            "(has(self.spec.topicName) ? self.spec.topicName : self.metadata.name) == "
            "(has(oldSelf.spec.topicName) ? oldSelf.spec.topicName : oldSelf.metadata.name)",
            "topicName is immutable: create another KafkaTopic for another topic",
            field_path=".spec.topicName",
        ),
        Cel(
            "!has(self.spec.partitions) || "
            "(has(oldSelf.spec.partitions) && self.spec.partitions >= oldSelf.spec.partitions) || "
            "self.spec.partitions >= (has(self.status) && has(self.status.partitions) ? "
            "self.status.partitions : 0)",
            "partitions cannot be decreased below what the topic has (status.partitions): Kafka "
            "cannot remove partitions",
            field_path=".spec.partitions",
        ),
        CLUSTER_REF_IS_IMMUTABLE,
    )

    spec: KafkaTopicSpec
    status: KafkaTopicStatus = Field(default=KafkaTopicStatus())

    @property
    def topic_name(self) -> str:
        """Name of the topic in Kafka."""
        return self.spec.topic_name or self.metadata.name

    @property
    def holds_finalizer(self) -> bool:
        return FINALIZER in self.metadata.finalizers


def config_value_to_text(value: str | int | float | bool) -> str:
    """A configuration value as Kafka stores it.

    YAML's booleans and numbers are allowed because quoting them is easily forgotten.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            # 0.5 stays 0.5; a whole number that JSON carried as 1e3 becomes 1000.
            return str(int(value)) if value.is_integer() else repr(value)
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class UnreadableTopic:
    """A KafkaTopic whose spec this Regent cannot read: stored under another version of the CRD.

    Attributes:
        field: The first field concerned, for instance ``spec.config[retention.ms]``.
        problem: What is wrong with it, as a sentence.
        is_protected: Whether the unread spec asks for ``deletionPolicy: Protect``.
    """

    metadata: ObjectMeta
    status: KafkaTopicStatus
    field: str
    problem: str
    is_protected: bool = False

    @property
    def holds_finalizer(self) -> bool:
        return FINALIZER in self.metadata.finalizers


def parse_kafka_topic(body: Mapping[str, Any]) -> KafkaTopic | UnreadableTopic:
    """Read an object of the API. Fields of a status that cannot be read count as absent.

    Raises:
        pydantic.ValidationError: If not even the metadata can be read.
    """
    metadata = ObjectMeta.model_validate(body["metadata"])
    status, _ = read_status(KafkaTopicStatus, body.get("status") or {})
    try:
        spec = KafkaTopicSpec.model_validate(body.get("spec"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raw = body.get("spec")
        policy = raw.get("deletionPolicy") if isinstance(raw, Mapping) else None
        return UnreadableTopic(
            metadata,
            status,
            field=_field_path(first["loc"]),
            problem=first["msg"],
            is_protected=policy == DeletionPolicy.PROTECT,
        )
    return KafkaTopic(metadata=metadata, spec=spec, status=status)


def _field_path(location: tuple[int | str, ...]) -> str:
    match location:
        case ("config", key, *_):
            # Behind the key, pydantic names the types it has tried.
            return f"spec.config[{key}]"
        case _:
            return ".".join(("spec", *map(str, location)))


def topic_name_of(body: Mapping[str, Any]) -> str:
    """The topic that a raw object declares, without validating it."""
    spec = body.get("spec")
    name = spec.get("topicName") if isinstance(spec, Mapping) else None
    return str(name or body["metadata"]["name"])
