"""How far the deletion of each queued topic is, in numbers of replicas.

Kept as replicas change their states, so that neither an answer of a broker nor a metric costs a
walk over everything that is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from regent.controller.state.states import ReplicaState


class TopicDeletionProgress:
    """Replicas of one topic.

    Attributes:
        replicas: Assigned replicas.
        deleted: Of those, the ones that their broker has deleted.
        started: Of those, the ones whose broker was asked to delete them and has not answered.
        ineligible: Of those, the ones that cannot be deleted now.
    """

    __slots__ = ("deleted", "ineligible", "replicas", "started")

    def __init__(self) -> None:
        self.replicas = self.deleted = self.started = self.ineligible = 0

    @property
    def is_complete(self) -> bool:
        """Whether no replica is left to be deleted."""
        return self.deleted == self.replicas

    def count(self, state: ReplicaState, change: int) -> None:
        """So many replicas in ``state`` appear, or disappear if ``change`` is negative."""
        self.replicas += change
        match state:
            case ReplicaState.DELETION_SUCCESSFUL:
                self.deleted += change
            case ReplicaState.DELETION_STARTED:
                self.started += change
            case ReplicaState.DELETION_INELIGIBLE:
                self.ineligible += change


class DeletionProgress:
    """Progress of all queued topics, and its sums."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicDeletionProgress] = {}
        self._total = TopicDeletionProgress()

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def __bool__(self) -> bool:
        return bool(self._topics)

    def of(self, topic: str) -> TopicDeletionProgress:
        """Progress of a queued topic."""
        return self._topics[topic]

    @property
    def replicas_to_delete(self) -> int:
        return self._total.replicas - self._total.deleted

    @property
    def ineligible_replicas(self) -> int:
        return self._total.ineligible

    def begin(self, topic: str, states: Iterable[ReplicaState]) -> None:
        """A topic was queued; ``states`` are those of its assigned replicas."""
        self._topics[topic] = TopicDeletionProgress()
        for state in states:
            self.count(topic, state, 1)

    def end(self, topic: str) -> None:
        """A topic is gone. One that was not queued is ignored."""
        progress = self._topics.pop(topic, None)
        if progress is not None:
            self._total.replicas -= progress.replicas
            self._total.deleted -= progress.deleted
            self._total.started -= progress.started
            self._total.ineligible -= progress.ineligible

    def count(self, topic: str, state: ReplicaState, change: int) -> None:
        """So many replicas of a queued topic appear in a state, or disappear from it if ``change``
        is negative."""
        self._topics[topic].count(state, change)
        self._total.count(state, change)
