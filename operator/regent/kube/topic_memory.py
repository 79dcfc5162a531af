"""What this process remembers about a resource between two looks. Losing it is harmless."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from regent.controller.commands import (
    Accepted,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Outcome,
    TopicCommand,
)
from regent.kube.settings import KubeSettings
from regent.kube.work_queue import backoff_s
from regent.reconcile.dispatch import is_transient
from regent.reconcile.request import Attempt
from regent.reconcile.topics.significance import is_significant
from regent.resources.kafka_topic_status import KafkaTopicStatus, Ownership

_ATTEMPTS_MAX: Final = 8
"""Attempts kept per resource; a resource never has more than a few commands of interest."""


@dataclass(frozen=True, slots=True)
class Outranked:
    """A status with a higher epoch than that of this process's term.

    Attributes:
        version: resourceVersion of its object.
        controller_epoch: Epoch of the term.
        since: Loop time at which it was first seen.
    """

    version: str
    controller_epoch: int
    since: float


@dataclass(slots=True)
class TopicMemory:
    """Memory of one resource.

    Attributes:
        uid: Of the object; another one means that everything else is void.
        generation: The generation last seen, ``seen_at`` the loop time at which it was first seen.
        spare_topic_id: Id for a topic to be created. It stays the same from look to look, so that
            a command that was refused is known again, and is used for one topic only.
        written_at: Loop time of the last write of its status; None: not written yet.
        written: The status written last.
        contests: How often in a row it had to be written again, because somebody else had changed
            it.
        created: The creation that was accepted, until the status shows it.
        outranked: The status that was left alone the last time; None: it was written.
    """

    uid: str
    generation: int
    seen_at: float
    spare_topic_id: uuid.UUID
    written_at: float | None = None
    written: KafkaTopicStatus | None = None
    contests: int = 0
    created: CreateTopic | None = None
    outranked: Outranked | None = None
    attempts: list[Attempt] = field(default_factory=list)

    def see(self, generation: int, *, at: float) -> None:
        """Compare with the resource's generation, and forget what has lost its meaning.

        That a topic was created or deleted a moment ago is true whatever the resource says now.
        """
        if generation != self.generation:
            self.generation = generation
            self.seen_at = at
            self.attempts = [attempt for attempt in self.attempts if _is_life_or_death(attempt)]
        # A refused one is kept: whether it is refused again decides how long to wait.
        self.attempts = [
            attempt
            for attempt in self.attempts
            if attempt.retry_at > at or not isinstance(attempt.outcome, Accepted)
        ]

    def note_written(self, status: KafkaTopicStatus, *, over: KafkaTopicStatus, at: float) -> None:
        """Remember that the status was written in the place of another one."""
        is_repeated = self._has_written(status) and is_significant(over, status)
        self.contests = self.contests + 1 if is_repeated else 0
        self.written, self.written_at = status, at

    def contest_pause_s(self, status: KafkaTopicStatus) -> float:
        """Seconds between two writes of a status that somebody else changes again and again."""
        if not self.contests or not self._has_written(status):
            return 0.0
        return backoff_s(self.contests, jitter=1.0)

    def _has_written(self, status: KafkaTopicStatus) -> bool:
        return self.written is not None and not is_significant(self.written, status)

    def settle(self, ownership: Ownership | None) -> None:
        """Forget the creation once the stored status shows that the topic was seen."""
        if ownership not in (None, Ownership.CREATING):
            self.created = None

    def note(
        self,
        command: TopicCommand,
        outcome: Outcome,
        *,
        controller_epoch: int,
        at: float,
        settings: KubeSettings,
        jitter: Callable[[], float],
        new_topic_id: Callable[[], uuid.UUID],
    ) -> None:
        """Remember an answer of the controller, so that the same is not asked again at once."""
        if isinstance(command, CreateTopic) and isinstance(outcome, Accepted):
            self.created = command
            self.spare_topic_id = new_topic_id()
        previous = next((a for a in self.attempts if a.command == command), None)
        self.attempts = [a for a in self.attempts if a.command != command][-_ATTEMPTS_MAX + 1 :]
        count = 1
        if isinstance(outcome, Accepted):
            if isinstance(command, DescribeTopicConfigs) and outcome.result:
                return
            delay_s = settings.accepted_settle_s
        elif is_transient(outcome):
            count = 1 if previous is None else previous.count + 1
            delay_s = backoff_s(count, jitter=jitter())
        else:
            delay_s = settings.refused_retry_s
        self.attempts.append(
            Attempt(
                command=command,
                outcome=outcome,
                generation=self.generation,
                controller_epoch=controller_epoch,
                retry_at=at + delay_s,
                count=count,
            )
        )


def _is_life_or_death(attempt: Attempt) -> bool:
    return isinstance(attempt.outcome, Accepted) and isinstance(
        attempt.command, CreateTopic | DeleteTopic
    )
