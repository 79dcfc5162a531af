"""The status of a KafkaTopic: what Regent reports. Bounded, like everything it writes."""

from __future__ import annotations

import enum
from typing import Final

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.conditions import Condition, Rfc3339
from regent.resources.resource_status import ResourceStatus, conditions_field

MAX_REPLICAS: Final = 100
MAX_CONFIG_KEYS: Final = 100
MAX_PARTITION_STATES: Final = 20
MAX_DRIFT_ENTRIES: Final = 50


class DeletionPolicy(enum.StrEnum):
    """What happens to the topic when its resource is deleted."""

    DELETE = "Delete"
    RETAIN = "Retain"
    PROTECT = "Protect"


class Ownership(enum.StrEnum):
    """How the resource came to own its topic.

    ``CREATING`` is an intent and owns nothing by itself: the topic is the resource's own if it has
    the intended id, or if this very process created it. ``LOST``: the resource owned a topic that
    somebody else deleted.
    """

    CREATING = "Creating"
    CREATED = "Created"
    ADOPTED = "Adopted"
    LOST = "Lost"


class ForeignDeletion(ApiModel):
    """A topic that somebody else deleted while this resource owned it."""

    topic_id: str | None = Field(
        default=None, description="Kafka's id of the deleted topic, if it had one."
    )
    detected_at: Rfc3339 = Field(description="When Regent found it out.")
    recreated_as: str | None = Field(
        default=None,
        description="Id of the topic that somebody else had created under the same name by then; "
        "without an id, cZxid and the ZooKeeper transaction that created its node.",
    )


class PartitionState(ApiModel):
    """One partition as the controller sees it."""

    partition: int = Field(description="Index of the partition.", ge=0)
    leader: int = Field(description="Broker id of the leader, -1 if there is none.", ge=-1)
    replicas: tuple[int, ...] = Field(
        description="Broker ids, the preferred leader first.",
        max_length=MAX_REPLICAS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    isr: tuple[int, ...] = Field(
        description="Broker ids of the replicas that are in sync.",
        max_length=MAX_REPLICAS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class DriftEntry(ApiModel):
    """One difference between the resource and the topic."""

    field: str = Field(description="Field of spec, for instance config[retention.ms].")
    desired: str = Field(
        default="",
        description="Value in spec; empty if it shall not be set, '' for an empty value.",
    )
    actual: str = Field(
        default="",
        description="Value of the topic; empty if it is not set, '' for an empty value.",
    )


class KafkaTopicStatus(ResourceStatus):
    """What Regent last saw and did. A report: Regent can rebuild all of it but what it says about
    ownership (`clusterId`, `ownership`, `topicId`, `intendedTopicId`, `managedConfig`).
    """

    conditions: tuple[Condition, ...] = conditions_field(
        "Ready, Reconciling and Stalled (kstatus), Synced and Healthy."
    )
    cluster_id: str | None = Field(
        default=None,
        description="Id of the Kafka cluster that this status speaks of. What it says about the "
        "topic holds for that cluster only.",
    )
    topic_name: str | None = Field(default=None, description="Name of the topic in Kafka.")
    topic_id: str | None = Field(
        default=None,
        description="Kafka's id of the topic (from inter.broker.protocol.version 2.8 on). Another "
        "id means that the topic was deleted and created again.",
    )
    topic_czxid: str | None = Field(
        default=None,
        description="ZooKeeper transaction that created the node of the topic (its cZxid). Another "
        "one means the same for a topic without an id.",
    )
    partitions: int | None = Field(default=None, description="Partitions of the topic.", ge=0)
    replicas: int | None = Field(
        default=None, description="Replication factor of the topic; the largest if it varies.", ge=0
    )
    leaderless: int | None = Field(
        default=None, description="Number of partitions without a leader.", ge=0
    )
    under_replicated: int | None = Field(
        default=None, description="Number of partitions with replicas that are not in sync.", ge=0
    )
    partition_summary: str | None = Field(
        default=None, description="Actual/declared number of partitions; actual alone if none is."
    )
    replica_summary: str | None = Field(
        default=None, description="Actual/declared replication factor; actual alone if none is."
    )
    partition_states: tuple[PartitionState, ...] = Field(
        default=(),
        description="A sample of the partitions: unhealthy ones first.",
        max_length=MAX_PARTITION_STATES,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    drift: tuple[DriftEntry, ...] = Field(
        default=(),
        description="How the topic differs from spec; the first ones if there are many.",
        max_length=MAX_DRIFT_ENTRIES,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    managed_config: tuple[str, ...] = Field(
        default=(),
        description="Configuration keys that this resource has set. One that disappears from spec "
        "is reset.",
        max_length=2 * MAX_CONFIG_KEYS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    ownership: Ownership | None = Field(
        default=None,
        description="How this resource came to own the topic; absent if it does not own it. "
        "Creating: it is about to create the topic. Lost: somebody else deleted the topic.",
    )
    intended_topic_id: str | None = Field(
        default=None,
        description="Id chosen for the topic that is being created. A topic with another id is "
        "not the one that this resource creates.",
    )
    deletion_policy: DeletionPolicy | None = Field(
        default=None,
        description="What would happen to the topic if this resource were deleted now: "
        "spec.deletionPolicy, or what follows from ownership if that is not set.",
    )
    last_foreign_deletion: ForeignDeletion | None = Field(
        default=None,
        description="The last time that somebody else deleted the topic of this resource.",
    )
    controller_epoch: int | None = Field(
        default=None,
        description="Epoch of the Kafka controller that last changed this status. A lower one "
        "of the same cluster leaves it alone for two minutes of its term.",
        ge=0,
    )
