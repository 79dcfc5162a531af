"""Which replicas the partitions of a topic get, or lose, for another replication factor.

Pure, and the same for the same topic and brokers: a plan that was begun, by whatever process, goes
on to the same replicas. No replica that stays is moved.

- Partitions that need more keep what they have, in its order. A new replica goes to a rack that the
  partition is not in, as long as there is one; among such brokers to the one with the fewest
  replicas of the topic; then to the next one in the ring of brokers after the preferred leader.
  So many topics of one partition do not all meet on the same brokers.
- Partitions that have too many lose first what is not alive, then what is not in sync, then what
  shares a rack, then any but the preferred leader and the leader: those on the brokers with the
  most replicas of the topic. So no partition has fewer in-sync replicas than it must.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from regent.admin.replica_assignment import BrokerRack, arrange
from regent.controller.view import PartitionView, TopicView

MOVING_AT_A_TIME: Final = 20
"""Partitions of a topic that are reassigned at the same time. The next ones follow as soon as the
view shows that some have arrived."""

MOVING_IN_CLUSTER: Final = 50
"""Partitions of the cluster that are reassigned at the same time, by whomever, when more are put on
their way. It is the default of PartitionReassignments, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """What is to be done for a replication factor.

    Attributes:
        targets: New replica lists by partition, the preferred leader first.
        unplaced: Partitions for which there are too few brokers.
    """

    targets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    unplaced: tuple[int, ...] = ()


def plan_replicas(
    topic: TopicView,
    *,
    factor: int,
    live: Sequence[BrokerRack],
    eligible: Sequence[BrokerRack],
    limit: int,
) -> ReplicaPlan:
    """The replicas that partitions are to have which have not ``factor`` of them, in their order.

    Partitions that are being reassigned count as if they had arrived, and are left alone.

    Args:
        live: The live brokers.
        eligible: Those of them that may get replicas; none of them has a rack, or all.
        limit: How many partitions get a target at most; the others are not looked at.
    """
    planner = _Planner(topic, factor=factor, live=live, eligible=eligible)
    targets: dict[int, tuple[int, ...]] = {}
    unplaced: list[int] = []
    for partition in topic.partitions:
        if len(targets) >= limit:
            break
        replicas = partition.target_replicas
        if len(replicas) == factor or partition.is_being_reassigned:
            continue
        shrinks = len(replicas) > factor
        target = planner.reduced(partition) if shrinks else planner.extended(partition)
        if target is None:
            unplaced.append(partition.partition)
        else:
            targets[partition.partition] = target
    return ReplicaPlan(targets=targets, unplaced=tuple(unplaced))


def may_begin(topic: TopicView, *, moving_elsewhere: int) -> int:
    """How many partitions may be put on their way now.

    Args:
        moving_elsewhere: How many partitions of other topics are on their way.
    """
    moving = sum(p.is_being_reassigned for p in topic.partitions)
    return max(0, min(MOVING_AT_A_TIME, MOVING_IN_CLUSTER - moving_elsewhere) - moving)


class _Planner:
    def __init__(
        self,
        topic: TopicView,
        *,
        factor: int,
        live: Sequence[BrokerRack],
        eligible: Sequence[BrokerRack],
    ) -> None:
        self._factor = factor
        self._racks = {broker.broker_id: broker.rack for broker in live}
        self._ring = arrange(eligible)
        self._position = {broker_id: i for i, broker_id in enumerate(self._ring)}
        # With what is planned: partitions before this one in the plan need not have arrived.
        self._load = Counter(
            replica for partition in topic.partitions for replica in partition.target_replicas
        )

    def extended(self, partition: PartitionView) -> tuple[int, ...] | None:
        chosen = list(partition.target_replicas)
        start = self._position.get(chosen[0], partition.partition) if chosen else 0
        while len(chosen) < self._factor:
            candidates = [broker_id for broker_id in self._ring if broker_id not in chosen]
            if not candidates:
                return None
            best = min(candidates, key=lambda b: self._cost(b, chosen, start))
            chosen.append(best)
        self._load.update(chosen[len(partition.target_replicas) :])
        return tuple(chosen)

    def _cost(self, broker_id: int, chosen: Sequence[int], start: int) -> tuple[int, int, int]:
        distance = (self._position[broker_id] - start) % len(self._ring)
        return (self._in_rack_of(broker_id, chosen), self._load[broker_id], distance)

    def reduced(self, partition: PartitionView) -> tuple[int, ...]:
        kept = {broker_id: i for i, broker_id in enumerate(partition.target_replicas)}
        in_sync = frozenset(partition.isr)
        # A list that somebody else wrote may name thousands of brokers that do not exist. So those
        # that are not alive are sorted once: what decides on one does not depend on the others.
        dead = [broker_id for broker_id in kept if broker_id not in self._racks]
        self._remove_dead(kept, [b for b in dead if b not in in_sync], partition.leader)
        self._remove_dead(kept, [b for b in dead if b in in_sync], partition.leader)
        while len(kept) > self._factor:
            self._remove(kept, self._most_dispensable(kept, in_sync, partition.leader))
        return tuple(kept)

    def _remove_dead(self, kept: dict[int, int], dead: Sequence[int], leader: int) -> None:
        preferred = next(iter(kept))
        order = sorted(
            dead, key=lambda b: (b != preferred, b != leader, self._load[b], kept[b]), reverse=True
        )
        for broker_id in order[: max(0, len(kept) - self._factor)]:
            self._remove(kept, broker_id)

    def _most_dispensable(
        self, kept: Mapping[int, int], in_sync: Collection[int], leader: int
    ) -> int:
        """Of replicas, with their places in the list, that are all alive."""
        preferred = next(iter(kept))
        in_rack = Counter(self._racks[broker_id] for broker_id in kept)

        def dispensability(broker_id: int) -> tuple[int, ...]:
            rack = self._racks[broker_id]
            return (
                broker_id not in in_sync,
                0 if rack is None else in_rack[rack],
                broker_id != preferred,
                broker_id != leader,
                self._load[broker_id],
                kept[broker_id],
            )

        return max(kept, key=dispensability)

    def _remove(self, kept: dict[int, int], broker_id: int) -> None:
        del kept[broker_id]
        self._load[broker_id] -= 1

    def _in_rack_of(self, broker_id: int, brokers: Sequence[int]) -> int:
        """How many of the brokers are in the rack of that one."""
        rack = self._racks.get(broker_id)
        return 0 if rack is None else sum(self._racks.get(other) == rack for other in brokers)
