"""Moves that the controller is being asked for, or has accepted, and that do not show yet.

The server that Regent is connected to may be behind the one that the controller writes to. Until a
move shows, its throttle must not be taken for one that is left over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from regent.controller.state.cluster_state import ClusterState
from regent.model.partition import TopicPartition


class ExpectedMoves:
    """Partitions on their way, each with the target that was accepted."""

    def __init__(self) -> None:
        self._targets: dict[TopicPartition, tuple[int, ...]] = {}
        self._asked = Counter[str]()

    @property
    def is_asked(self) -> bool:
        """Whether the controller is being asked for moves."""
        return bool(self._asked)

    @contextmanager
    def asking(self, partitions: Collection[TopicPartition]) -> Iterator[None]:
        """While the controller is asked to move these, which may take a while."""
        topics = Counter({tp.topic for tp in partitions})
        self._asked.update(topics)
        try:
            yield
        finally:
            self._asked -= topics

    def expect(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """The controller has accepted these."""
        self._targets.update(targets)

    def forget_accepted(self) -> None:
        """What was accepted shows by now, or never will."""
        self._targets.clear()

    def awaited(self, cluster: ClusterState) -> Collection[str]:
        """Topics with a move that is asked for, or does not show. One that shows is not expected
        any more."""
        for tp, target in list(self._targets.items()):
            assignment = cluster.assignment(tp)
            if assignment is None or assignment.target_replicas == target:
                del self._targets[tp]
        return dict.fromkeys((*(tp.topic for tp in self._targets), *self._asked)).keys()
