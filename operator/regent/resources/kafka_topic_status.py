"""The status of a KafkaTopic: what Regent reports. Bounded, like everything it writes."""

from __future__ import annotations

import enum
from typing import Final

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.conditions import Condition

MAX_REPLICAS: Final = 100
MAX_CONFIG_KEYS: Final = 100
MAX_PARTITION_STATES: Final = 20
MAX_DRIFT_ENTRIES: Final = 50


class Ownership(enum.StrEnum):
    """How the resource came to own its topic."""

    CREATING = "Creating"
    CREATED = "Created"
    ADOPTED = "Adopted"


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
    desired: str = Field(default="", description="Value in spec; empty if it shall not be set.")
    actual: str = Field(default="", description="Value of the topic; empty if it is not set.")


class KafkaTopicStatus(ApiModel):
    """What Regent last saw and did. A report: Regent can rebuild all of it, `ownership` apart."""

    observed_generation: int | None = Field(
        default=None, description="metadata.generation that this status was computed for.", ge=0
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Ready, Reconciling and Stalled (kstatus), Synced and Healthy.",
        max_length=16,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )
    topic_name: str | None = Field(default=None, description="Name of the topic in Kafka.")
    topic_id: str | None = Field(
        default=None,
        description="Kafka's id of the topic (from inter.broker.protocol.version 2.8 on). Another "
        "id means that the topic was deleted and created again.",
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
        default=None, description="Actual/declared number of partitions."
    )
    replica_summary: str | None = Field(
        default=None, description="Actual/declared replication factor."
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
        description="How this resource came to own the topic; absent if it does not own it.",
    )
    controller_epoch: int | None = Field(
        default=None,
        description="Epoch of the Kafka controller that last changed this status. A lower one "
        "never overwrites it.",
        ge=0,
    )
