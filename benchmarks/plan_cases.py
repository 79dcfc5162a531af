"""Small clusters to plan for, as others have published them: small enough to know the best plan.

Where a source gives a shape and no data the case is made from a seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regent_rebalance.goals import (
    ALL_GOALS,
    DISK_DISTRIBUTION,
    HARD_GOALS,
    LEADER_DISTRIBUTION,
    RACK,
    REPLICA_DISTRIBUTION,
    Goals,
)
from regent_rebalance.snapshot import Brokers, Rows, Snapshot, snapshot_of

_GB = 10**9


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, goals, and where they come from."""

    name: str
    snapshot: Snapshot
    goals: Goals


def cases() -> tuple[Case, ...]:
    """The small clusters, in the order of their sizes."""
    return (
        Case("rack repair", _one_partition([0, 1]), Goals(names=(RACK,))),
        Case("racks too few", _one_partition([0, 1, 2]), Goals(names=(RACK,))),
        Case("three brokers", _three_brokers(), Goals(names=(RACK, REPLICA_DISTRIBUTION))),
        Case("one broker of 20 leaves", _two_zones(), Goals(drained=(19,))),
        Case("pinned and weighted", _weighted(60, 12, seed=7), _balance(pinned=("t0",))),
        Case("weighted", _weighted(120, 12, seed=8), _balance()),
        Case("leaders of 256", _leaders(), Goals(names=(LEADER_DISTRIBUTION,))),
        Case("256 shards", _shards(256, 32), _disks()),
    )


def _balance(pinned: tuple[str, ...] = ()) -> Goals:
    names = (RACK, *(name for name in ALL_GOALS if name not in HARD_GOALS))
    return Goals(names=names, resource_balance=1.25, pinned=pinned)


def _disks() -> Goals:
    return Goals(names=(DISK_DISTRIBUTION,), resource_balance=1.10)


def _one_partition(replicas: Sequence[int]) -> Snapshot:
    """The rack-aware clusters of Cruise Control's class DeterministicCluster."""
    return _snapshot(["0", "0", "1"], [list(replicas)])


def _three_brokers() -> Snapshot:
    """Its small cluster: two topics with five partitions, of which one shares a rack."""
    lists = [[0, 2], [1, 0], [1, 2], [0, 2], [0, 1]]
    sizes = [75 * _GB, 55 * _GB, 5 * _GB, 55 * _GB, 95 * _GB]
    return _snapshot(["0", "0", "1"], lists, topics=["T1", "T1", "T2", "T2", "T2"], sizes=sizes)


def _two_zones() -> Snapshot:
    """The demonstration of kafka-assignment-optimizer: 20 brokers in two zones, one topic.

    `kafka-reassign-partitions` moved nearly all replicas when broker 19 was to leave.
    """
    lists = [[(7 + p) % 10, 10 + (8 + p) % 10] for p in range(10)]
    return _snapshot(["a" if broker % 2 == 0 else "b" for broker in range(20)], lists)


def _weighted(partitions: int, brokers: int, *, seed: int) -> Snapshot:
    """Four topics of different weights on brokers in three racks, as kafka-reassign-optimizer's."""
    random = np.random.default_rng(seed)
    weight = random.exponential(_GB, size=partitions) * np.repeat([1, 2, 3, 4], partitions // 4)
    chances = np.linspace(1, 2, brokers)
    lists = []
    for _ in range(partitions):
        in_rack = [
            random.choice(np.arange(rack, brokers, 3), p=chances[rack::3] / chances[rack::3].sum())
            for rack in random.permutation(3)
        ]
        lists.append([int(broker) for broker in in_rack])
    return _snapshot(
        [f"r{broker % 3}" for broker in range(brokers)],
        lists,
        topics=[f"t{p // (partitions // 4)}" for p in range(partitions)],
        sizes=weight.astype(np.int64).tolist(),
        rates=(weight / 1000).astype(np.int64).tolist(),
    )


def _leaders() -> Snapshot:
    """Kafka-kit's case of leadership: 256 partitions, two replicas each, on 23 brokers."""
    random = np.random.default_rng(23)
    chances = random.exponential(size=23)
    lists = [
        [int(b) for b in random.choice(23, size=2, replace=False, p=chances / chances.sum())]
        for _ in range(256)
    ]
    return _snapshot([None] * 23, lists)


def _shards(shards: int, servers: int) -> Snapshot:
    """Shards of one replica, as POP's: the load of the i-th is that of Zipf's law."""
    random = np.random.default_rng(42)
    load = (_GB / np.arange(1, shards + 1) ** 0.5).astype(np.int64)
    lists = [[int(server)] for server in random.integers(servers, size=shards)]
    return _snapshot([None] * servers, lists, sizes=random.permutation(load).tolist())


def _snapshot(
    racks: Sequence[str | None],
    lists: Sequence[Sequence[int]],
    *,
    topics: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
) -> Snapshot:
    """Brokers 0, 1, ... in these racks; sizes and rates of partitions."""
    names = topics or ["t"] * len(lists)
    number: dict[str, int] = {}
    partition = []
    for name in names:
        partition.append(number.get(name, 0))
        number[name] = partition[-1] + 1
    sized = sizes or [0] * len(lists)
    return snapshot_of(
        Brokers.of(list(range(len(racks))), racks),
        Rows(
            topic=names,
            partition=partition,
            lengths=[len(replicas) for replicas in lists],
            replicas=[broker for replicas in lists for broker in replicas],
            leader=[replicas[0] for replicas in lists],
            sizes=[size for size, row in zip(sized, lists, strict=True) for _ in row],
            bytes_in=rates,
            bytes_out=rates,
        ),
    )
