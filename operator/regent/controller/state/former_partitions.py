"""Partitions of topics that were deleted: brokers may still know them.

A broker whose session ends while its process lives on (a long pause, a network that fails) keeps
the metadata that it has, and nobody can tell it what is deleted meanwhile. It would go on to name
those partitions to clients until its next start, also beside the partitions of a topic that was
created again with fewer of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from regent.model.partition import TopicPartition

MAX_FORMER: Final = 50_000
"""As many as one UpdateMetadata names. The oldest ones are forgotten first."""


class FormerPartitions:
    """The partitions that were deleted last by this process, whichever its term was.

    Args:
        limit: How many are kept.
    """

    def __init__(self, *, limit: int = MAX_FORMER) -> None:
        self._limit = limit
        self._partitions: OrderedDict[TopicPartition, None] = OrderedDict()

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._partitions)

    def __contains__(self, tp: object) -> bool:
        return tp in self._partitions

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Topics were deleted."""
        for tp in partitions:
            self._partitions[tp] = None
            self._partitions.move_to_end(tp)
        while len(self._partitions) > self._limit:
            self._partitions.popitem(last=False)
