"""Everything that is known about a KafkaTopic, and what follows about ownership of its topic.

A stored status is evidence about one cluster and, where Kafka has topic ids, about one topic. What
it says about another cluster is ignored. Where topics have no ids (inter.broker.protocol.version
below 2.8: Kafka allocates none, and neither does Regent), a record of ownership holds until the
topic is seen to be gone, and an intent to create a topic proves nothing about a topic that exists:
after a crash it is foreign, and the adoption policy decides.

The first topic that a resource with the policy Adopt creates has an id that follows from the
resource's uid. So nothing has to be stored for the topic to be known as created by the resource,
whenever the process ends. (As with an intent that is stored: if the process ends before any status
shows the topic, and somebody deletes it meanwhile, the next one has the same id.)
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from regent.admin.commands import Accepted, CreateTopic, DeleteTopic
from regent.controller.view import TopicView
from regent.model.topic import topic_id_from_text, topic_id_to_text
from regent.model.topic_name_rules import TopicNameRules
from regent.reconcile.request import ResourceRequest
from regent.reconcile.topics.claims import Claim
from regent.reconcile.unreadable_topics import problem_of
from regent.resources.conditions import ConditionReason, ConditionType, find_condition
from regent.resources.kafka_topic import AdoptionPolicy, KafkaTopic
from regent.resources.kafka_topic_status import KafkaTopicStatus, Ownership

_FIRST_TOPIC_IDS: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "first-topic-id.kafka.regent.dev")
"""Namespace of the ids that follow from uids (RFC 4122). It must never change: topics that were
created a moment before an upgrade would count as adopted."""


def may_speak_of(status: KafkaTopicStatus, cluster_id: str | None) -> bool:
    """Whether nothing says that a stored status speaks of another cluster than this one."""
    return status.cluster_id is None or cluster_id is None or status.cluster_id == cluster_id


def first_topic_id(uid: str, *, cluster_id: str) -> uuid.UUID:
    """Id of the first topic that the resource with this uid creates in a cluster, if it adopts."""
    return uuid.uuid5(_FIRST_TOPIC_IDS, f"{cluster_id}/{uid}")


class TopicIdentity(NamedTuple):
    """What a topic is known by, as texts; None: it has none, or that is not known."""

    topic_id: str | None
    czxid: str | None

    @classmethod
    def of(cls, topic: TopicView) -> TopicIdentity:
        topic_id = None if topic.topic_id is None else topic_id_to_text(topic.topic_id)
        return cls(topic_id, hex(topic.czxid) if topic.czxid else None)


class ClusterMatch(enum.Enum):
    """Whether the resource belongs to the cluster that the view shows."""

    SAME = enum.auto()
    OTHER = enum.auto()
    UNKNOWN = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest(ResourceRequest[KafkaTopic]):
    """Everything that is known about a KafkaTopic.

    Attributes:
        config: Explicit configuration of the topic; None if it was not read yet.
        claims: All resources that claim the topic; this one is among them unless it only observes.
        created: The creation that the controller accepted from this process, as long as the status
            does not record the topic as created.
        created_as: What the topic of that creation was seen as; None: it has not shown yet.
        name_rules: Which namespaces may declare which topics.
        spare_topic_id: A fresh id for a topic to be created.
        moving_elsewhere: How many partitions of other topics are being reassigned, or about to.
        goes_with_definition: Whether the resource is deleted together with the definition of its
            kind.
        unreadable_namespaces: Those whose KafkaTopics are known as they were when they could be
            read.
        topic: The topic, None if the view does not have it (which means little while incomplete).
    """

    config: Mapping[str, str] | None
    claims: tuple[Claim, ...]
    spare_topic_id: uuid.UUID
    created: CreateTopic | None = None
    created_as: TopicIdentity | None = None
    name_rules: TopicNameRules = field(default_factory=TopicNameRules)
    moving_elsewhere: int = 0
    goes_with_definition: bool = False
    unreadable_namespaces: Collection[str] = ()
    topic: TopicView | None = field(init=False)

    def __post_init__(self) -> None:
        # Looked up once: a plan asks for it some thirty times.
        object.__setattr__(self, "topic", self.view.topics.get(self.topic_name))

    @property
    def topic_name(self) -> str:
        return self.resource.topic_name

    @property
    def problem(self) -> str | None:
        """Why the topic is not, or not wholly, in the view though it exists; None: it is."""
        return problem_of(self.view, self.topic_name)

    @property
    def topic_id(self) -> str | None:
        """Id of the topic as text, None if there is no topic or it has no id."""
        return None if self.topic is None else TopicIdentity.of(self.topic).topic_id

    @property
    def topic_czxid(self) -> str | None:
        """Transaction that created the topic's node, as ZooKeeper's tools print it; None if there
        is no topic."""
        return None if self.topic is None else TopicIdentity.of(self.topic).czxid

    @property
    def cluster(self) -> ClusterMatch:
        """Whether the resource belongs to this cluster: as its spec says, else its status."""
        actual = self.view.cluster_id
        declared, recorded = self.resource.spec.cluster_id, self.resource.status.cluster_id
        expected = recorded if declared is None else declared
        if expected is None or expected == actual:
            return ClusterMatch.SAME
        return ClusterMatch.UNKNOWN if actual is None else ClusterMatch.OTHER

    @property
    def record(self) -> KafkaTopicStatus:
        """The stored status, as far as it speaks of this cluster; with the ownership that the rest
        shows where that is missing."""
        status = self.resource.status
        if not self._is_recorded_here:
            return KafkaTopicStatus(conditions=status.conditions)
        ownership = status.ownership or self._ownership_that_shows
        if ownership is status.ownership:
            return status
        return status.model_copy(update={"ownership": ownership})

    @property
    def _ownership_that_shows(self) -> Ownership | None:
        """What a status without an ownership, which somebody has edited or an admission policy has
        changed, shows of it all the same.

        Whoever holds the finalizer and counts has owned the topic that the status names.
        """
        status, winner = self.resource.status, self.winner
        if not self._adopts_by_finalizer or winner is None:
            return None
        if winner.uid != self.resource.metadata.uid:
            return None
        if (status.topic_id, status.topic_czxid) != (None, None):
            return Ownership.ADOPTED
        is_gone = self.topic is None and status.last_foreign_deletion is not None
        return Ownership.LOST if is_gone else None

    @property
    def _adopts_by_finalizer(self) -> bool:
        """Whether the finalizer makes a topic the resource's own: only an owner holds it. It counts
        only where a foreign topic would be adopted anyway, and not for another cluster."""
        adopts = self.resource.spec.adoption_policy is AdoptionPolicy.ADOPT
        return self.resource.holds_finalizer and adopts and self._is_recorded_here

    @property
    def _is_recorded_here(self) -> bool:
        """Whether nothing says that the stored status speaks of another cluster."""
        return may_speak_of(self.resource.status, self.view.cluster_id)

    @property
    def known_as(self) -> TopicIdentity:
        """What the resource's topic is known by: as the status records it, or, if that could not be
        stored since, as this process has created it."""
        recorded = TopicIdentity(self.record.topic_id, self.record.topic_czxid)
        return self.created_as or recorded

    @property
    def is_recreated(self) -> bool:
        """Whether the topic is another one than the one that is known.

        Its id says so. Where the topic has none, or had none, the transaction that created its node
        does: a node that is only changed keeps it.
        """
        if self.topic is None:
            return False
        for before, now in zip(self.known_as, TopicIdentity.of(self.topic), strict=True):
            if before is not None and now is not None:
                return before != now
        return False

    @property
    def owns_topic(self) -> bool:
        """Whether the topic that exists (or existed) is the resource's own.

        The status says so. If it was lost, the finalizer does.
        """
        if self.created_as is not None and self.is_recreated:
            return False
        if self.created is not None and self._may_be(self.created.topic_id):
            return True
        record = self.record
        match record.ownership:
            case Ownership.CREATED | Ownership.ADOPTED:
                return not self.is_recreated
            case Ownership.CREATING:
                return self.topic_id is not None and self.topic_id == record.intended_topic_id
            case Ownership.LOST:
                lost = record.last_foreign_deletion
                return (
                    lost is not None
                    and lost.topic_id is not None
                    and lost.topic_id == self.topic_id
                )
            case None:
                return self._adopts_by_finalizer

    def _may_be(self, topic_id: uuid.UUID | None) -> bool:
        """Whether nothing speaks against the topic having this id."""
        actual = None if self.topic is None else self.topic.topic_id
        return actual is None or topic_id is None or actual == topic_id

    @property
    def ownership_if_kept(self) -> Ownership:
        """How the resource owns the existing topic, once it has nothing against it."""
        born = self.record.ownership in (Ownership.CREATING, Ownership.CREATED) or self._is_first
        is_own = self.owns_topic and (born or self.created is not None)
        return Ownership.CREATED if is_own else Ownership.ADOPTED

    @property
    def new_topic_id(self) -> uuid.UUID:
        """Id of the topic to be created: the one already chosen, if any."""
        if self.created is not None and self.created.topic_id is not None:
            return self.created.topic_id
        if self.record.ownership is Ownership.CREATING:
            return _parsed(self.record.intended_topic_id) or self.spare_topic_id
        first = self._first_topic_id if self.is_untold else None
        return first or self.spare_topic_id

    @property
    def is_untold(self) -> bool:
        """Whether the resource never had a status, and so never a topic that was seen."""
        return self.resource.status == KafkaTopicStatus()

    @property
    def _first_topic_id(self) -> uuid.UUID | None:
        """Id of the first topic that the resource creates in this cluster.

        Only a resource without a status gives it to a topic. None: it is not known, or the policy
        asks for an intent that is stored.
        """
        uid, cluster_id = self.resource.metadata.uid, self.view.cluster_id
        if not uid or cluster_id is None:
            return None
        if self.resource.spec.adoption_policy is not AdoptionPolicy.ADOPT:
            return None
        return first_topic_id(uid, cluster_id=cluster_id)

    @property
    def _is_first(self) -> bool:
        """Whether the topic is the first one that the resource has created, and no status has shown
        it yet: one that does says what has become of it."""
        if self.topic is None or self.topic.topic_id is None or self.record.topic_id is not None:
            return False
        return self.record.ownership is None and self.topic.topic_id == self._first_topic_id

    @property
    def may_creation_stay_unsaid(self) -> bool:
        """Whether the status need not mention yet that the topic is being created: that will be
        over in a moment, and nothing depends on it, as the id of the topic says whose it is."""
        return (
            self.created is not None
            and self.created.topic_id is not None
            and self.creation_shows_in_s is not None
            and self.is_untold
            and self.created.topic_id == self._first_topic_id
        )

    @property
    def creation_shows_in_s(self) -> float | None:
        """Seconds within which a topic just created is to show in the view; None: there is none,
        or it has shown."""
        if self.created is None or self._is_deletion_accepted:
            return None
        waits = [
            attempt.retry_at - self.monotonic_s
            for attempt in self.attempts
            if isinstance(attempt.command, CreateTopic)
            and isinstance(attempt.outcome, Accepted)
            and attempt.controller_epoch == self.view.controller_epoch
            and attempt.retry_at > self.monotonic_s
        ]
        return max(waits, default=None)

    @property
    def is_as_created(self) -> bool:
        """Whether the topic is the one that was created a moment ago, and nobody has configured it
        since: its configuration need not be read."""
        created, topic = self.created, self.topic
        return (
            created is not None
            and created.topic_id is not None
            and topic is not None
            and topic.topic_id == created.topic_id
            and not topic.config_changes
            and not self.view.is_client  # nobody would have counted a change
            and self.creation_shows_in_s is not None
        )

    @property
    def is_deletion_begun(self) -> bool:
        """Whether the topic is being deleted, even if the view does not show it yet."""
        if self.topic is not None and self.topic.is_being_deleted:
            return True
        return self._is_deletion_accepted and not self.is_recreated

    @property
    def was_deletion_begun(self) -> bool:
        """Whether the topic is being deleted, or was when somebody last saw it."""
        return self.is_deletion_begun or (self.topic is None and self.is_deletion_recorded)

    @property
    def is_deletion_recorded(self) -> bool:
        """Whether the stored status says that the topic is being deleted, in whatever cluster."""
        found = (
            find_condition(self.record.conditions, type_)
            for type_ in (ConditionType.READY, ConditionType.RECONCILING)
        )
        return any(each is not None and each.reason == ConditionReason.DELETING for each in found)

    @property
    def _is_deletion_accepted(self) -> bool:
        return any(
            isinstance(attempt.command, DeleteTopic) and isinstance(attempt.outcome, Accepted)
            for attempt in self.attempts
        )

    @property
    def winner(self) -> Claim | None:
        """The claim that counts."""
        return min(self.claims_here, key=self.precedence, default=None)

    @property
    def claims_here(self) -> tuple[Claim, ...]:
        """The claims to the topic of this cluster, of those that may declare it."""
        return tuple(
            claim
            for claim in self.claims
            if claim.is_for(self.view.cluster_id)
            and self.name_rules.allow(claim.namespace, self.topic_name)
        )

    @property
    def may_declare(self) -> bool:
        """Whether the rules let the resource's namespace declare the topic."""
        return self.name_rules.allow(self.resource.metadata.namespace, self.topic_name)

    def precedence(self, claim: Claim) -> tuple[int, str, str]:
        """Sorts claims: the smallest wins."""
        cluster_id = self.view.cluster_id
        evidence = claim.evidence(topic_id=self.topic_id, cluster_id=cluster_id)
        return (evidence, *claim.age)

    @property
    def is_loser(self) -> bool:
        """Whether this resource claims the topic and another one's claim counts."""
        winner, uid = self.winner, self.resource.metadata.uid
        claims = any(claim.uid == uid for claim in self.claims)
        return claims and winner is not None and winner.uid != uid


def _parsed(topic_id: str | None) -> uuid.UUID | None:
    """A stored id; None if there is none, or what is stored is none."""
    try:
        return None if topic_id is None else topic_id_from_text(topic_id)
    except ValueError:
        return None
