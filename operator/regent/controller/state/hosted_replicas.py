"""By broker the partitions that are assigned to it, collected some at a time."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView

from regent.model.partition import ReplicaAssignment, TopicPartition

Hosted = dict[int, dict[TopicPartition, bool]]
"""Partitions by broker, as a LeaderAndIsr names them: no replica is new."""


class NoneIsNew(Mapping[TopicPartition, bool]):
    """Different partitions as a LeaderAndIsr names them, without a replica that is new.

    A failover has one for each broker with all its replicas, and they are hardly ever asked for by
    name. So what finds them is made when somebody asks.
    """

    __slots__ = ("_by_name", "_partitions")

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self._partitions = partitions
        self._by_name: dict[TopicPartition, bool] | None = None

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._partitions)

    def __getitem__(self, tp: TopicPartition) -> bool:
        return self._found()[tp]

    def __contains__(self, tp: object) -> bool:
        return tp in self._found()

    def items(self) -> ItemsView[TopicPartition, bool]:
        return self._found().items()

    def values(self) -> ValuesView[bool]:
        return self._found().values()

    def _found(self) -> dict[TopicPartition, bool]:
        if self._by_name is None:
            self._by_name = dict.fromkeys(self._partitions, False)
        return self._by_name


class HostedReplicas:
    """The partitions of one topic are next to each other if they are added together.

    Attributes:
        by_broker: What was collected. A broker that has no partition any more may be in it.
    """

    def __init__(self) -> None:
        self.by_broker: Hosted = {}
        self._hosts: dict[tuple[int, ...], list[dict[TopicPartition, bool]]] = {}

    def add(self, partitions: Mapping[TopicPartition, ReplicaAssignment]) -> None:
        """Partitions that are not in it yet."""
        by_broker, hosts = self.by_broker, self._hosts
        for tp, assignment in partitions.items():
            replicas = assignment.replicas
            found = hosts.get(replicas)
            if found is None:  # few partitions have others than those before
                found = hosts[replicas] = [by_broker.setdefault(b, {}) for b in replicas]
            for hosted in found:
                hosted[tp] = False

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions, whatever their replicas were."""
        for tp in partitions:
            for hosted in self.by_broker.values():
                hosted.pop(tp, None)
