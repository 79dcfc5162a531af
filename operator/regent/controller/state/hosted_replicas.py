"""By broker the partitions that are assigned to it, collected some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regent.model.partition import ReplicaAssignment, TopicPartition

Hosted = dict[int, dict[TopicPartition, bool]]
"""Partitions by broker, as a LeaderAndIsr names them: no replica is new."""


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
