"""What this process remembers about a KafkaTopic beside what it does about any resource."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from regent.admin.commands import (
    Accepted,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Outcome,
    ResourceCommand,
)
from regent.controller.view import ClusterView, TopicView
from regent.kube.memory import ObjectMemory
from regent.kube.settings import KubeSettings
from regent.reconcile.request import Attempt
from regent.reconcile.topics.request import TopicIdentity
from regent.reconcile.topics.significance import is_significant
from regent.resources.kafka_topic_status import ForeignDeletion, KafkaTopicStatus, Ownership


@dataclass(slots=True, kw_only=True)
class TopicMemory(ObjectMemory[KafkaTopicStatus]):
    """Memory of one KafkaTopic.

    Attributes:
        spare_topic_id: Id for a topic to be created. It stays the same from one reconciliation to
            the next, so that a command that was refused is known again, and is used for one topic
            only.
        created: The creation that was accepted, until the status shows it.
        created_as: What the topic of that creation was seen as.
        lost_before: The loss that the status told of when that creation was accepted.
        goes_with_definition: Whether the resource is deleted together with its definition.
    """

    spare_topic_id: uuid.UUID
    is_significant: Callable[[KafkaTopicStatus, KafkaTopicStatus], bool] = is_significant
    created: CreateTopic | None = None
    created_as: TopicIdentity | None = None
    lost_before: ForeignDeletion | None = None
    goes_with_definition: bool = False

    def outlives(self, attempt: Attempt) -> bool:
        """That a topic was created or deleted a moment ago is true whatever the resource says."""
        return isinstance(attempt.outcome, Accepted) and isinstance(
            attempt.command, CreateTopic | DeleteTopic
        )

    def settle(self, status: KafkaTopicStatus) -> None:
        """Forget the creation once the stored status tells that the topic was seen, or lost."""
        is_seen = status.ownership not in (None, Ownership.CREATING)
        is_lost = status.last_foreign_deletion not in (None, self.lost_before)
        if is_seen or is_lost:
            self.created = self.created_as = None

    def recognise(self, topic: TopicView | None) -> None:
        """Remember what the topic that was created is known by, once it shows.

        There was none when its creation was planned, and views do not go back. So a topic without
        an id is the one that was created, though the command had an id: below
        inter.broker.protocol.version 2.8 the controller does not give it to the topic.
        """
        if topic is None or self.created is None or self.created_as is not None:
            return
        ids = (self.created.topic_id, topic.topic_id)
        if None in ids or self.created.topic_id == topic.topic_id:
            self.created_as = TopicIdentity.of(topic)

    def note(
        self,
        command: ResourceCommand,
        outcome: Outcome,
        *,
        view: ClusterView,
        at: float,
        settings: KubeSettings,
        jitter: Callable[[], float],
        new_topic_id: Callable[[], uuid.UUID],
        status: KafkaTopicStatus,
    ) -> None:
        """Remember an answer of the controller, so that the same is not asked again at once.

        Args:
            status: The stored one that the command was planned for.
        """
        if isinstance(outcome, Accepted):
            if isinstance(command, CreateTopic):
                self.created, self.created_as = command, None
                self.lost_before = status.last_foreign_deletion
                self.spare_topic_id = new_topic_id()
            if isinstance(command, DescribeTopicConfigs) and outcome.result:
                self.forget_attempt(command)  # there is nothing to be waited for
                return
        self.note_attempt(
            command,
            outcome,
            view=view,
            at=at,
            settings=settings,
            jitter=jitter,
        )
