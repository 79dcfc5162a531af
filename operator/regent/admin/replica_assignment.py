"""Where the replicas of new partitions go.

Kafka's algorithm (``AdminUtils.assignReplicasToBrokers``): leaders walk round the brokers,
followers stand at a shift from their leader that grows with every round, and with racks the brokers
are dealt out rack by rack. Brokers are always taken in order of their ids: upstream did not when a
topic was created through a broker, and growth then put new leaders on brokers that already had
some.

One thing is better here. Growth continues the pattern of creation exactly: upstream starts the
shift of the followers again, here it is found from the partitions that exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Placement = dict[int, tuple[int, ...]]
"""Partition -> replicas, the preferred leader first."""

_PARTITIONS_COMPARED = 64


class BrokerRack(NamedTuple):
    """A broker that may get replicas."""

    broker_id: int
    rack: str | None


class PlacementError(ValueError):
    """The replicas cannot be placed.

    Attributes:
        field: What has to change: "partitions" or "replication_factor", or "" for the brokers.
        awaits_brokers: Whether it is possible once more brokers, or those named, are alive.
    """

    def __init__(self, message: str, field: str = "", *, awaits_brokers: bool = False) -> None:
        super().__init__(message)
        self.field = field
        self.awaits_brokers = awaits_brokers


class Pattern(NamedTuple):
    """Where the walk starts.

    Attributes:
        start: Position of partition 0's leader in the arranged list of brokers.
        shift: Shift of the followers in the first round.
    """

    start: int
    shift: int


def assign_replicas(
    brokers: Sequence[BrokerRack],
    *,
    partitions: int,
    replication_factor: int,
    pattern: Pattern,
    first_partition: int = 0,
) -> Placement:
    """Place partitions ``first_partition`` up to ``first_partition + partitions``.

    Placing n and then m partitions with the same pattern equals placing n + m at once.

    Raises:
        PlacementError: Numbers that cannot work, or racks that only some brokers have.
    """
    _check(brokers, partitions, replication_factor)
    racks = {b.broker_id: b.rack for b in brokers}
    arranged = arrange(brokers)
    rack_aware = brokers[0].rack is not None
    placement: Placement = {}
    for partition in range(first_partition, first_partition + partitions):
        leader = (partition + pattern.start) % len(arranged)
        shift = pattern.shift + partition // len(arranged)
        if rack_aware:
            placement[partition] = _across_racks(arranged, racks, leader, shift, replication_factor)
        else:
            followers = [
                arranged[_follower(leader, shift, j, len(arranged))]
                for j in range(replication_factor - 1)
            ]
            placement[partition] = (arranged[leader], *followers)
    return placement


def continue_assignment(
    brokers: Sequence[BrokerRack],
    existing: Mapping[int, tuple[int, ...]],
    *,
    partitions: int,
) -> Placement:
    """Place ``partitions`` more partitions after the existing ones, in the pattern they follow.

    The pattern starts at the broker that leads partition 0 (or, if it is gone, at the next id, as
    upstream does). Among the possible shifts the one that explains the most existing partitions is
    taken, the smallest first.

    Raises:
        PlacementError: As :func:`assign_replicas`.
    """
    first = existing[min(existing)]
    arranged = arrange(brokers)
    _check(brokers, partitions, len(first))
    candidates = [i for i, broker_id in enumerate(arranged) if broker_id == first[0]]
    if not candidates:
        successor = min((b for b in arranged if b > first[0]), default=arranged[0])
        candidates = [arranged.index(successor)]
    start = candidates[0]
    compared = sorted(existing)[:_PARTITIONS_COMPARED]

    def would_be(partition: int, shift: int) -> tuple[int, ...]:
        placed = assign_replicas(
            brokers,
            partitions=1,
            replication_factor=len(first),
            pattern=Pattern(start, shift),
            first_partition=partition,
        )
        return placed[partition]

    def explained(shift: int) -> int:
        # One by one: where numbers are missing, the last one may be far away.
        return sum(would_be(p, shift) == existing[p] for p in compared)

    shifts = range(max(1, len(arranged) - 1)) if len(first) > 1 else range(1)
    shift = max(shifts, key=lambda s: (explained(s), -s))
    return assign_replicas(
        brokers,
        partitions=partitions,
        replication_factor=len(first),
        pattern=Pattern(start, shift),
        first_partition=max(existing) + 1,
    )


def arrange(brokers: Sequence[BrokerRack]) -> list[int]:
    """Brokers in the order in which leaders walk: by id, or dealt out rack by rack."""
    ordered = sorted(brokers)
    if not ordered or ordered[0].rack is None:
        return [b.broker_id for b in ordered]
    by_rack: dict[str, list[int]] = {}
    for broker in ordered:
        by_rack.setdefault(broker.rack or "", []).append(broker.broker_id)
    racks = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, racks))
    return [rack[i] for i in range(longest) for rack in racks if i < len(rack)]


def _check(brokers: Sequence[BrokerRack], partitions: int, replication_factor: int) -> None:
    if partitions < 1:
        raise PlacementError(f"{partitions} partitions: at least 1 is needed", "partitions")
    if replication_factor < 1:
        raise PlacementError(
            f"replication factor {replication_factor}: at least 1 is needed", "replication_factor"
        )
    if replication_factor > len(brokers):
        raise PlacementError(
            f"replication factor {replication_factor} is larger than the number of live brokers, "
            f"{len(brokers)}; lower it or start more brokers",
            "replication_factor",
            awaits_brokers=True,
        )
    without = sorted(b.broker_id for b in brokers if b.rack is None)
    if without and len(without) < len(brokers):
        raise PlacementError(
            f"brokers {without} have no rack while others have one; set broker.rack on all brokers "
            "or on none, or give a replica assignment"
        )


def _follower(leader: int, shift: int, j: int, brokers: int) -> int:
    return (leader + 1 + (shift + j) % (brokers - 1)) % brokers


def _across_racks(
    arranged: Sequence[int],
    racks: Mapping[int, str | None],
    leader: int,
    shift: int,
    replication_factor: int,
) -> tuple[int, ...]:
    """Followers on racks that have no replica yet, as long as there are any."""
    rack_count = len(dict.fromkeys(racks.values()))
    chosen = [arranged[leader]]
    used_racks = {racks[chosen[0]]}
    k = 0
    while len(chosen) < replication_factor:
        broker_id = arranged[_follower(leader, shift * rack_count, k, len(arranged))]
        rack = racks[broker_id]
        k += 1
        if broker_id not in chosen and (rack not in used_racks or len(used_racks) == rack_count):
            chosen.append(broker_id)
            used_racks.add(rack)
    return tuple(chosen)
