"""Which of several resources counts for a topic.

The one that owns the topic counts, and among those that do not own it the oldest. So a resource
that was restored from a backup, or that only observed until now, takes nothing from anybody.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from regent.resources.kafka_topic import KafkaTopic, ManagementPolicy, UnreadableTopic
from regent.resources.kafka_topic_status import Ownership


class Evidence(enum.IntEnum):
    """What speaks for a claim; the smallest is the strongest."""

    PROVEN = enum.auto()
    """The status records ownership of the topic with this very id."""
    RECORDED = enum.auto()
    """The status records ownership; whether it is this topic is unknown without ids."""
    BEGUN = enum.auto()
    """It holds the finalizer, is about to create the topic, or has lost it."""
    NONE = enum.auto()


@dataclass(frozen=True, slots=True)
class Claim:
    """A resource that declares a topic and is allowed to write it.

    Attributes:
        created: metadata.creationTimestamp. RFC 3339 in UTC, so that the texts sort by time.
        is_being_deleted: Whether it has a deletion timestamp.
        holds_finalizer: Only a resource that owns its topic, or is about to create it, does.
        ownership: What its status records.
        topic_id: Id of the topic that it owns, or is about to create, by its status.
        cluster_id: Id of the Kafka cluster that its status speaks of.
        declared_cluster_id: Id of the Kafka cluster that its spec names.
        replicas: The replication factor that it keeps the topic at; None: it does not.
    """

    namespace: str
    name: str
    uid: str
    created: str
    is_being_deleted: bool = False
    holds_finalizer: bool = False
    ownership: Ownership | None = None
    topic_id: str | None = None
    cluster_id: str | None = None
    declared_cluster_id: str | None = None
    replicas: int | None = None

    def is_for(self, cluster_id: str | None) -> bool:
        """Whether it claims the topic of this cluster, as far as that is known.

        Nothing is done for a resource of another cluster, so it must neither keep others from the
        topic nor inherit it.
        """
        expected = self.declared_cluster_id or self.cluster_id
        return cluster_id is None or expected in (None, cluster_id)

    def evidence(self, *, topic_id: str | None, cluster_id: str | None) -> Evidence:
        """What speaks for it.

        Args:
            topic_id: Id of the existing topic; None: there is no topic, or it has no id.
            cluster_id: Id of the cluster; None if it is not known.
        """
        if cluster_id is not None and self.cluster_id not in (None, cluster_id):
            return Evidence.NONE
        ids = topic_id is not None and self.topic_id is not None
        match self.ownership:
            case Ownership.CREATED | Ownership.ADOPTED:
                if not ids:
                    return Evidence.RECORDED
                return Evidence.PROVEN if topic_id == self.topic_id else Evidence.NONE
            case Ownership.CREATING if topic_id is not None:
                return Evidence.PROVEN if topic_id == self.topic_id else Evidence.NONE
            case Ownership.CREATING | Ownership.LOST:
                return Evidence.BEGUN
            case None:
                return Evidence.BEGUN if self.holds_finalizer else Evidence.NONE

    def keeps_replicas(self, *, cluster_id: str | None) -> bool:
        """Whether another number of replicas, whoever has asked for it, is corrected."""
        owns = self.ownership in (Ownership.CREATED, Ownership.ADOPTED)
        return (
            self.replicas is not None
            and owns
            and not self.is_being_deleted
            and self.is_for(cluster_id)
        )

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def claim_of(resource: KafkaTopic | UnreadableTopic) -> Claim | None:
    """The claim of a resource; None if it claims nothing: it only observes, cannot be read, or was
    deleted and released. Others may keep the latter in existence, by a finalizer of their own."""
    if isinstance(resource, UnreadableTopic):
        return None
    if resource.metadata.is_being_deleted and not resource.holds_finalizer:
        return None
    if resource.spec.management_policy is ManagementPolicy.OBSERVE:
        return None
    metadata, status = resource.metadata, resource.status
    is_intent = status.ownership is Ownership.CREATING
    is_managed = resource.spec.management_policy is ManagementPolicy.MANAGED
    return Claim(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        created=metadata.creation_timestamp,
        is_being_deleted=metadata.is_being_deleted,
        holds_finalizer=resource.holds_finalizer,
        ownership=status.ownership,
        topic_id=status.intended_topic_id if is_intent else status.topic_id,
        cluster_id=status.cluster_id,
        declared_cluster_id=resource.spec.cluster_id,
        replicas=resource.spec.replicas if is_managed else None,
    )
