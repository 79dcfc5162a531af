"""Which of several resources counts for a topic.

The one that owns the topic counts, and among those that do not own it the oldest. So a resource
that was restored from a backup, or that only observed until now, takes nothing from anybody.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Self

from regent.reconcile.rivals import changed_claims
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
        return cluster_id is None or self.expected_cluster_id in (None, cluster_id)

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

    def in_cluster(self, cluster_id: str | None) -> Self:
        """The same claim, recorded for a cluster."""
        return dataclasses.replace(self, cluster_id=cluster_id)

    @property
    def is_bare(self) -> bool:
        """Whether nothing but its age speaks for it."""
        return self.ownership is None and not self.holds_finalizer

    @property
    def age(self) -> tuple[str, str]:
        """Sorts claims by age: the smallest is the oldest."""
        return (self.created, self.uid)

    @property
    def expected_cluster_id(self) -> str | None:
        """Id of the Kafka cluster whose topic it claims; None: that of any."""
        return self.declared_cluster_id or self.cluster_id

    def shadows(self, other: Claim, *, cluster_id: str | None) -> bool:
        """Whether it goes before one that only its age speaks for, under any rules by which that
        one counts, in one cluster, or in any."""
        return (
            self.is_bare
            and self.age < other.age
            and self.namespace == other.namespace
            and self.expected_cluster_id in (None, other.expected_cluster_id, cluster_id)
        )

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


def news(
    before: Claim | None, after: Claim | None, claims: Collection[Claim]
) -> Callable[[Claim | None], bool]:
    """For which rivals a change of another resource's claim may change which claim counts, or which
    one would take over.

    A claim that only its age speaks for goes before younger ones, unless an older one does so
    whenever it counts; and it may take over from one that something else speaks for.

    Args:
        claims: All claims to the topic as they are now.
    """
    changed = changed_claims(before, after)
    is_bare = all(claim.is_bare for claim in changed)

    @functools.cache
    def leading(cluster_id: str | None) -> list[Claim]:
        return [c for c in changed if not any(o.shadows(c, cluster_id=cluster_id) for o in claims)]

    def is_news_for(rival: Claim | None) -> bool:
        if rival is None or not changed:
            return False
        if not is_bare or not rival.is_bare:
            return True
        return any(claim.age < rival.age for claim in leading(rival.expected_cluster_id))

    return is_news_for
