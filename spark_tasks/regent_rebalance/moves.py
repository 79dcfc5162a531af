"""What a plan's changes copy: from which leader, to which brokers, how many bytes, how urgently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.goals import Goals
from regent_rebalance.plan import Changes
from regent_rebalance.problem import problem_of
from regent_rebalance.ragged import Bools, Ints, contains, ints, offsets_of, owners, take
from regent_rebalance.snapshot import UNKNOWN, Snapshot

URGENCIES = ("offline", "rack", "disk", "other")
"""Why a change is made, the most urgent reason first: a replica is on a dead broker; replicas share
a rack needlessly; a replica leaves a broker whose disks are full; anything else."""

OFFLINE, RACK_SHARED, DISK_FULL, OTHER = range(len(URGENCIES))

FULL_DISK = 0.9
"""Disks are full when this share of them is used."""

NOBODY = -1
"""The source of a partition without a living replica: nothing can be copied."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What each change of a plan copies and removes. Brokers are positions in the snapshot.

    Attributes:
        partition: The position of each change's partition in the snapshot.
        size: Bytes of one copy.
        source: The broker that new replicas copy from, the leader; NOBODY if none lives.
        target_offsets, targets: The brokers that get a new replica.
        gone_offsets, gone: The brokers whose replica is removed once the copies are in sync.
        gone_bytes: What each removal frees.
        urgency: Position in URGENCIES.
    """

    partition: Ints
    size: Ints
    source: Ints
    target_offsets: Ints
    targets: Ints
    gone_offsets: Ints
    gone: Ints
    gone_bytes: Ints
    urgency: Ints

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def copies(self) -> Ints:
        """How many new replicas each change has."""
        return np.diff(self.target_offsets)

    def sent(self, brokers: int) -> Ints:
        """Bytes that each broker sends in all."""
        has_source = self.source != NOBODY
        totals = np.zeros(brokers, dtype=np.int64)
        np.add.at(totals, self.source[has_source], (self.copies * self.size)[has_source])
        return totals

    def received(self, brokers: int) -> Ints:
        """Bytes that each broker gets in all."""
        totals = np.zeros(brokers, dtype=np.int64)
        np.add.at(totals, self.targets, self.size[owners(self.target_offsets)])
        return totals


def moves_of(snapshot: Snapshot, goals: Goals, changes: Changes) -> Moves:
    """Raises InvalidInputError for changes of other partitions or of other replicas."""
    partition = locate(snapshot, changes)
    before = take(snapshot.offsets, snapshot.replicas, partition)
    after = snapshot.brokers.positions_of(changes.after, what="replicas of the plan")
    count = len(snapshot.brokers)
    old = owners(changes.before_offsets) * count + before
    new = owners(changes.after_offsets) * count + after
    arrives, leaves = ~contains(np.sort(old), new), ~contains(np.sort(new), old)
    places = np.repeat(snapshot.offsets[partition] - changes.before_offsets[:-1], _lengths(changes))
    sizes = snapshot.sizes[places + np.arange(len(before))]
    copied = snapshot.copy_bytes()[partition]
    moves = Moves(
        partition=partition,
        size=copied,
        source=_sources(snapshot)[partition],
        target_offsets=_kept(changes.after_offsets, arrives),
        targets=after[arrives],
        gone_offsets=_kept(changes.before_offsets, leaves),
        gone=before[leaves],
        gone_bytes=np.where(sizes == UNKNOWN, copied[owners(changes.before_offsets)], sizes)[
            leaves
        ],
        urgency=np.full(len(changes), OTHER, dtype=np.int64),
    )
    _rank(moves.urgency, snapshot, goals, moves)
    return moves


def locate(snapshot: Snapshot, changes: Changes) -> Ints:
    """The position of each change's partition in the snapshot.

    Raises InvalidInputError if the snapshot has no such partition, or has it on other brokers.
    """
    number = {name: i for i, name in enumerate(snapshot.topics)}
    topic = ints([number.get(name, UNKNOWN) for name in changes.topic])
    width = 1 + int(max(snapshot.partition.max(initial=0), changes.partition.max(initial=0)))
    keys = snapshot.topic.astype(np.int64) * width + snapshot.partition
    wanted = topic * width + changes.partition
    found = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    known = (topic != UNKNOWN) & (keys[found] == wanted if len(keys) else topic == wanted)
    if not known.all():
        raise InvalidInputError(
            f"the snapshot has no partition {_name(changes, int(np.argmin(known)))}: "
            "take the snapshot that the plan was made from"
        )
    now = snapshot.brokers.ids[take(snapshot.offsets, snapshot.replicas, found)]
    same = np.array_equal(snapshot.replication[found], _lengths(changes))
    if not (same and np.array_equal(now, changes.before)):
        raise InvalidInputError(
            "the snapshot has other replicas than the plan starts from: take the snapshot that "
            "the plan was made from, or plan again"
        )
    return ints(found)


def _name(changes: Changes, row: int) -> str:
    return f"{changes.topic[row]}-{changes.partition[row]}"


def _lengths(changes: Changes) -> Ints:
    return np.diff(changes.before_offsets)


def _kept(offsets: Ints, kept: Bools) -> Ints:
    """Where each list begins once the others of its values are dropped."""
    return offsets_of(np.bincount(owners(offsets)[kept], minlength=len(offsets) - 1))


def _sources(snapshot: Snapshot) -> Ints:
    """The living leader of each partition; without one its first living replica."""
    living = snapshot.brokers.alive[snapshot.replicas]
    of = owners(snapshot.offsets)
    source = np.full(snapshot.partitions, NOBODY, dtype=np.int64)
    # The last assignment to a place wins: the first replica is written last.
    source[of[living][::-1]] = snapshot.replicas[living][::-1]
    led = (snapshot.leader != UNKNOWN) & snapshot.brokers.alive[snapshot.leaders()]
    source[led] = snapshot.leaders()[led]
    return source


def _rank(urgency: Ints, snapshot: Snapshot, goals: Goals, moves: Moves) -> None:
    """Write each change's urgency, the least urgent reason first."""
    brokers = snapshot.brokers
    urgency[owners(moves.gone_offsets)[_full(snapshot)[moves.gone]]] = DISK_FULL
    problem = problem_of(snapshot, goals)
    if problem.repairs_racks:
        shared = np.zeros(snapshot.partitions, dtype=np.bool_)
        crowded = problem.kept_in_rack() > problem.rack_limits()[:, None]
        shared[problem.movable] = crowded.any(axis=1)
        urgency[shared[moves.partition]] = RACK_SHARED
    urgency[owners(moves.gone_offsets)[~brokers.alive[moves.gone]]] = OFFLINE
    urgency[moves.copies == 0] = OTHER


def disk_used(snapshot: Snapshot) -> Ints:
    """Bytes on each broker; a replica of unknown size counts as what a copy of it would have."""
    assumed = snapshot.copy_bytes()[owners(snapshot.offsets)]
    used = np.zeros(len(snapshot.brokers), dtype=np.int64)
    known = np.where(snapshot.sizes == UNKNOWN, assumed, snapshot.sizes)
    np.add.at(used, snapshot.replicas, known)
    return used


def _full(snapshot: Snapshot) -> Bools:
    capacity = snapshot.brokers.disk_bytes
    full: Bools = (capacity != UNKNOWN) & (disk_used(snapshot) >= FULL_DISK * capacity)
    return full
