"""Which replicas partitions get, or lose, when their number changes.

Nothing else is moved. What stays keeps its order, so the preferred leader stays; what comes is on
racks that the partition does not use yet, as long as there are any, and on the brokers that have
the fewest replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from regent.controller.view import ClusterView, PartitionView, TopicView
from regent.model.partition import TopicPartition


class ReplicaPlacement:
    """Where replicas are, while some come and go.

    Args:
        hosts: Brokers that may get replicas.
    """

    def __init__(self, view: ClusterView, *, hosts: Collection[int]) -> None:
        self._hosts = sorted(hosts)
        self._racks: Mapping[int, str | None] = {
            broker_id: broker.rack for broker_id, broker in view.brokers.items()
        }
        self._loads: Counter[int] = Counter()
        for topic in view.topics.values():
            for partition in topic.partitions:
                self._loads.update(partition.replicas)

    def resized(self, topic: TopicView, factor: int) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of the partitions of a topic that do not have so many yet, or have more.

        There are fewer than asked for where there are too few brokers. A partition that is being
        moved is among them, too: how many it will have is not what it has.
        """
        hosted: Counter[int] = Counter()
        for partition in topic.partitions:
            hosted.update(partition.replicas)
        resized: dict[TopicPartition, tuple[int, ...]] = {}
        for partition in topic.partitions:
            replicas = list(partition.replicas)
            while len(replicas) < factor and self._add(replicas, hosted):
                pass
            while len(replicas) > factor:
                self._remove(replicas, partition, hosted)
            if partition.is_being_reassigned or tuple(replicas) != partition.replicas:
                resized[TopicPartition(topic.name, partition.partition)] = tuple(replicas)
        return resized

    def _add(self, replicas: list[int], hosted: Counter[int]) -> bool:
        """Add the best broker; False: there is none."""
        candidates = [broker for broker in self._hosts if broker not in replicas]
        if not candidates:
            return False
        used = {self._racks.get(broker) for broker in replicas} - {None}

        def cost(broker: int) -> tuple[bool, int, int, int]:
            return self._racks[broker] in used, hosted[broker], self._loads[broker], broker

        chosen = min(candidates, key=cost)
        replicas.append(chosen)
        hosted[chosen] += 1
        self._loads[chosen] += 1
        return True

    def _remove(self, replicas: list[int], partition: PartitionView, hosted: Counter[int]) -> None:
        """Remove a replica, never the preferred leader: one that is not in sync before others, then
        one whose rack has another, then one on the broker that has the most."""

        def cost(broker: int) -> tuple[bool, bool, int, int, int]:
            is_in_sync = broker in partition.isr
            is_alone = not self._shares_rack(broker, replicas)
            return is_in_sync, is_alone, -hosted[broker], -self._loads[broker], -broker

        chosen = min(replicas[1:], key=cost)
        replicas.remove(chosen)
        hosted[chosen] -= 1
        self._loads[chosen] -= 1

    def _shares_rack(self, broker: int, replicas: Sequence[int]) -> bool:
        rack = self._racks.get(broker)
        return rack is not None and any(
            self._racks.get(other) == rack for other in replicas if other != broker
        )
