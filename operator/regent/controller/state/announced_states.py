"""The values of partitions that brokers are sent, with their encoded bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import repeat

from regent.controller.state.leadership_entries import Entries, LeadershipEntries
from regent.model.partition import TopicPartition
from regent.protocol.partition_state import PartitionState


class AnnouncedStates(dict[TopicPartition, PartitionState]):
    """Values by partition. Each is made when it is first sent, and dropped when leadership or
    assignment changes: it is valid as long as it is here.

    Attributes:
        entries: The same collected for the LeaderAndIsr requests of a take-over, if somebody does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: LeadershipEntries | None = None

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that change."""
        if self.entries is not None:
            partitions = list(partitions)
            self.entries.drop(partitions)
        if self:  # while a cluster is loaded there is nothing yet
            deque(map(self.pop, partitions, repeat(None)), maxlen=0)

    def forget_entries(self, topic: str) -> None:
        """The assignments of a topic change."""
        if self.entries is not None:
            self.entries.forget(topic)

    def take_entries(self) -> Entries:
        """The entries that are up to date. They are not kept."""
        entries, self.entries = self.entries, None
        return {} if entries is None else entries.take()
