"""Small snapshots for tests of flights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regent.planning.snapshot import UNKNOWN, Snapshot, SnapshotBroker, SnapshotPartition


def snapshot(
    racks: Mapping[int, str | None],
    partitions: Sequence[tuple[int, ...]],
    *,
    dead: Sequence[int] = (),
    isrs: Mapping[int, tuple[int, ...]] | None = None,
    leaders: Mapping[int, int] | None = None,
    size: int = UNKNOWN,
) -> Snapshot:
    """A topic "t" with the replicas of each partition, the first of which lead unless it is said
    otherwise; everybody is in sync unless it is said otherwise."""
    return Snapshot(
        brokers=tuple(SnapshotBroker(i, rack, i not in dead) for i, rack in sorted(racks.items())),
        partitions=tuple(
            SnapshotPartition(
                "t",
                number,
                replicas,
                (leaders or {}).get(number, replicas[0]),
                (size,) * len(replicas),
                (isrs or {}).get(number, replicas),
            )
            for number, replicas in enumerate(partitions)
        ),
    )


def names(partitions: Sequence[object]) -> list[str]:
    return [str(partition) for partition in partitions]
