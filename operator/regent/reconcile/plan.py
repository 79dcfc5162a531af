"""What goes into reconciling a KafkaTopic and what comes out: plain values.

Reconciling is level-triggered. The request holds everything that is known now; nothing says which
event led to it. The answer is a plan, which somebody else carries out in this order: finalizer
added, status (if ``status_first``), commands, status, finalizer removed.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from regent.controller.commands import Accepted, Command, CreateTopic, Outcome
from regent.controller.view import ClusterView, TopicView
from regent.model.topic import topic_id_to_text
from regent.resources.kafka_topic import AdoptionPolicy, KafkaTopic
from regent.resources.kafka_topic_status import KafkaTopicStatus


@dataclass(frozen=True, slots=True)
class Claim:
    """A resource that declares a topic and is allowed to write it.

    Attributes:
        created: metadata.creationTimestamp. RFC 3339 in UTC, so that the texts sort by time.
        is_being_deleted: Whether it has a deletion timestamp.
    """

    namespace: str
    name: str
    uid: str
    created: str
    is_being_deleted: bool = False

    @property
    def precedence(self) -> tuple[str, str]:
        """Sorts claims: the smallest wins."""
        return (self.created, self.uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command that was sent for a resource, with its outcome.

    It keeps the same command from being sent again at once: an accepted one needs a moment to show
    in the view, a refused one will be refused again.

    Attributes:
        generation: metadata.generation of the resource; a change of the resource is worth a try.
        controller_epoch: Epoch of the view; so is another controller.
        retry_at: When the command may be sent again.
        count: How often it was sent in a row.
    """

    command: Command
    outcome: Outcome
    generation: int
    controller_epoch: int
    retry_at: datetime
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    """Everything that is known about a KafkaTopic.

    Attributes:
        config: Explicit configuration of the topic; None if it was not read yet.
        claims: All resources that claim the topic; this one is among them unless it only observes.
        attempts: Commands sent for this resource that did not show in the view yet.
        seen_at: When this process first saw this generation of the resource.
        now: The present, aware.
    """

    resource: KafkaTopic
    view: ClusterView
    config: Mapping[str, str] | None
    claims: tuple[Claim, ...]
    seen_at: datetime
    now: datetime
    attempts: tuple[Attempt, ...] = ()

    @property
    def topic_name(self) -> str:
        return self.resource.topic_name

    @property
    def is_answered(self) -> bool:
        """Whether some process has already reacted to this generation of the resource."""
        return self.resource.status.observed_generation == self.resource.metadata.generation

    @property
    def unanswered_s(self) -> float:
        """Seconds since this process first saw this generation."""
        return (self.now - self.seen_at).total_seconds()

    @property
    def topic(self) -> TopicView | None:
        """The topic, None if the view does not have it (which means little while incomplete)."""
        return self.view.topics.get(self.topic_name)

    @property
    def topic_id(self) -> str | None:
        """Id of the topic as text, None if there is no topic or it has no id."""
        topic_id = None if self.topic is None else self.topic.topic_id
        return None if topic_id is None else topic_id_to_text(topic_id)

    @property
    def is_recreated(self) -> bool:
        """Whether the topic is another one than the status speaks of."""
        before = self.resource.status.topic_id
        return before is not None and self.topic_id is not None and before != self.topic_id

    @property
    def has_just_created(self) -> bool:
        """Whether this process has created the topic, even if the status does not say so yet."""
        return any(
            isinstance(attempt.command, CreateTopic) and isinstance(attempt.outcome, Accepted)
            for attempt in self.attempts
        )

    @property
    def owns_topic(self) -> bool:
        """Whether the resource has created or adopted the topic that exists (or existed).

        The status says so. If it was lost, the finalizer does: only an owner holds it. It counts
        only where a foreign topic would be adopted anyway.
        """
        if self.has_just_created:
            return True
        resource = self.resource
        adopts = resource.spec.adoption_policy is AdoptionPolicy.ADOPT
        known = resource.status.ownership is not None or (resource.holds_finalizer and adopts)
        return known and not self.is_recreated

    @property
    def winner(self) -> Claim | None:
        """The claim that counts: the oldest one."""
        return min(self.claims, key=lambda claim: claim.precedence, default=None)

    @property
    def is_loser(self) -> bool:
        """Whether this resource claims the topic and another one's claim counts."""
        winner, uid = self.winner, self.resource.metadata.uid
        claims = any(claim.uid == uid for claim in self.claims)
        return claims and winner is not None and winner.uid != uid


class FinalizerAction(enum.Enum):
    """What becomes of the resource's finalizer."""

    LEAVE = enum.auto()
    ADD = enum.auto()
    REMOVE = enum.auto()


class EventReason(enum.StrEnum):
    """Reasons of Kubernetes Events beside those of conditions. Stable: people filter by them."""

    TOPIC_CREATED = "TopicCreated"
    TOPIC_ADOPTED = "TopicAdopted"
    PARTITIONS_ADDED = "PartitionsAdded"
    CONFIG_CHANGED = "ConfigChanged"
    DRIFT_REVERTED = "DriftReverted"
    TOPIC_DELETION_STARTED = "TopicDeletionStarted"
    TOPIC_DELETED = "TopicDeleted"
    TOPIC_RETAINED = "TopicRetained"
    TOPIC_HANDED_OVER = "TopicHandedOver"


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """A Kubernetes Event to be recorded for the resource."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What has to be done for a resource now.

    Attributes:
        status: The status to be shown if it differs from the present one; None: leave it alone.
        commands: For the controller, in order.
        status_first: Whether the status must be stored before the commands are sent.
        finalizer: Adding comes before the commands, removing after everything else.
        events: To be recorded once the plan is carried out.
        requeue_after_s: When to look again even if nothing happens; None: no need.
    """

    status: KafkaTopicStatus | None = None
    commands: tuple[Command, ...] = ()
    status_first: bool = False
    finalizer: FinalizerAction = FinalizerAction.LEAVE
    events: tuple[PlannedEvent, ...] = ()
    requeue_after_s: float | None = None
