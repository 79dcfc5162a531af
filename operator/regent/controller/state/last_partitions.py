"""Something about the partitions that were noted last, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from regent.model.partition import TopicPartition

V = TypeVar("V")


class LastPartitions(Generic[V]):
    """What was noted last about each of the last partitions. The oldest ones are forgotten first.

    Args:
        limit: How many are kept.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._noted: OrderedDict[TopicPartition, V] = OrderedDict()

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._noted)

    def __contains__(self, tp: object) -> bool:
        return tp in self._noted

    def get(self, tp: TopicPartition) -> V | None:
        """What was noted about a partition, if anything."""
        return self._noted.get(tp)

    def note(self, noted: Mapping[TopicPartition, V]) -> None:
        """Note something about partitions, which are the newest ones then."""
        for tp, value in noted.items():
            self._noted[tp] = value
            self._noted.move_to_end(tp)
        while len(self._noted) > self._limit:
            self._noted.popitem(last=False)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget what was noted about partitions."""
        for tp in partitions:
            self._noted.pop(tp, None)
