"""Which moves begin next: as many as the limits leave room for.

Copies count where they cost: at the broker that receives one, and at the leader, which sends it.
Everything that moves in the cluster counts, whoever has begun it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from regent.controller.view import PartitionView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.request import SentMove
from regent.reconcile.reassignments.stages import MoveStatus
from regent.resources.partition_reassignment import Concurrency


@dataclass(slots=True)
class Traffic:
    """What moves at the same time.

    Attributes:
        partitions: How many.
        copies: By broker: replicas that it receives or sends.
    """

    partitions: int = 0
    copies: Counter[int] = field(default_factory=Counter)

    def add(self, copies: Collection[int], *, leader: int) -> None:
        """One more partition moves."""
        self.partitions += 1
        self.copies.update(copies)
        if leader >= 0:
            self.copies[leader] += len(copies)

    def has_room(self, copies: Collection[int], *, leader: int, limits: Concurrency) -> bool:
        """Whether one more partition may move. One that alone exceeds what its leader may send
        moves when the leader sends nothing else: else it never would."""
        if self.partitions >= limits.total:
            return False
        if any(self.copies[broker] >= limits.per_broker for broker in copies):
            return False
        sent = self.copies[leader] if leader >= 0 else 0
        return not copies or not sent or sent + len(copies) <= limits.per_broker


def present_traffic(
    moving: Mapping[TopicPartition, PartitionView], sent: Mapping[TopicPartition, SentMove]
) -> Traffic:
    """What moves now, or was sent and does not show yet."""
    traffic = Traffic()
    for partition in moving.values():
        traffic.add(partition.adding_replicas, leader=partition.leader)
    for tp, change in sent.items():
        if tp not in moving:
            traffic.add(change.copies, leader=change.leader)
    return traffic


def next_batch(
    pending: Iterable[MoveStatus], traffic: Traffic, limits: Concurrency
) -> dict[TopicPartition, tuple[int, ...]]:
    """The targets of the moves that begin now. ``traffic`` takes them in."""
    batch: dict[TopicPartition, tuple[int, ...]] = {}
    for status in pending:
        if traffic.partitions >= limits.total:
            break
        goal = status.next_goal(one_by_one=limits.per_partition_one_by_one)
        copies = copies_of(status, goal)
        leader = -1 if status.partition is None else status.partition.leader
        if traffic.has_room(copies, leader=leader, limits=limits):
            traffic.add(copies, leader=leader)
            batch[status.move.tp] = goal
    return batch


def copies_of(status: MoveStatus, goal: tuple[int, ...]) -> tuple[int, ...]:
    """Brokers that get a copy when a partition goes there."""
    present = () if status.partition is None else status.partition.replicas
    return tuple(broker for broker in goal if broker not in present)
