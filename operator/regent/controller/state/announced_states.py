"""The values of partitions that brokers are sent, with their encoded bytes."""

from __future__ import annotations

from collections.abc import Iterable

from regent.model.partition import TopicPartition
from regent.protocol.partition_state import PartitionState


class AnnouncedStates(dict[TopicPartition, PartitionState]):
    """Values by partition. Each is made when it is first sent, and dropped when leadership or
    assignment changes: it is valid as long as it is here."""

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that change."""
        if self:  # while a cluster is loaded there is nothing yet
            for tp in partitions:
                self.pop(tp, None)
