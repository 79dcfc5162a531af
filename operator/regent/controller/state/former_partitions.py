"""Partitions of topics that were deleted: brokers may still know them.

A broker whose session ends while its process lives on (a long pause, a network that fails) keeps
the metadata that it has, and nobody can tell it what is deleted meanwhile. It would go on to name
those partitions to clients until its next start, also beside the partitions of a topic that was
created again with fewer of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from regent.controller.state.last_partitions import LastPartitions
from regent.model.partition import TopicPartition

MAX_FORMER: Final = 50_000
"""As many as one UpdateMetadata names."""


class FormerPartitions(LastPartitions[None]):
    """The partitions that were deleted last by this process, whichever its term was."""

    def __init__(self, *, limit: int = MAX_FORMER) -> None:
        super().__init__(limit=limit)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Topics were deleted."""
        self.note(dict.fromkeys(partitions))
