"""Partitions with a value each, in the order in which they were collected."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import TypeVar

from regent.model.partition import TopicPartition

V = TypeVar("V")


class PartitionColumns(Mapping[TopicPartition, V]):
    """A mapping that is two sequences of the same length: different partitions, and their values.

    A new controller has some of all partitions, and hardly ever asks for one by name: putting a
    million into a table takes a tenth of a second. So the table is made when somebody asks.

    Args:
        partitions: Nobody changes either sequence any more.
    """

    __slots__ = ("_partitions", "_table", "_values")

    def __init__(self, partitions: Sequence[TopicPartition], values: Sequence[V]) -> None:
        self._partitions = partitions
        self._values = values
        self._table: dict[TopicPartition, V] | None = None

    @classmethod
    def of(cls, mapping: Mapping[TopicPartition, V]) -> PartitionColumns[V]:
        """A mapping as it is now."""
        return cls(list(mapping), list(mapping.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._partitions)

    def __getitem__(self, tp: TopicPartition) -> V:
        return self._by_name()[tp]

    def __contains__(self, tp: object) -> bool:
        return tp in self._by_name()

    def items(self) -> ItemsView[TopicPartition, V]:
        return _Items(self)

    def values(self) -> ValuesView[V]:
        return _Values(self)

    def in_parts(self, size: int) -> Iterator[PartitionColumns[V]]:
        """So many partitions each, but for the last part."""
        for start in range(0, len(self._partitions), size):
            part = slice(start, start + size)
            yield PartitionColumns(self._partitions[part], self._values[part])

    def _by_name(self) -> dict[TopicPartition, V]:
        if self._table is None:
            self._table = dict(zip(self._partitions, self._values, strict=True))
        return self._table


class _Items(ItemsView[TopicPartition, V]):
    _mapping: PartitionColumns[V]

    def __iter__(self) -> Iterator[tuple[TopicPartition, V]]:
        return zip(self._mapping._partitions, self._mapping._values, strict=True)


class _Values(ValuesView[V]):
    _mapping: PartitionColumns[V]

    def __iter__(self) -> Iterator[V]:
        return iter(self._mapping._values)
