"""Packs a plan's changes into batches: first fit, urgent changes first, large before small.

Within one urgency changes of similar size share a batch, as a batch takes as long as its busiest
broker. A less urgent change may fill a more urgent batch as long as that takes no longer for it.
Nothing is started before the disks of its targets have room: what leaves frees its bytes when its
batch has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from regent_rebalance.disk_room import DiskRoom
from regent_rebalance.moves import NOBODY, URGENCIES, Moves, disk_used
from regent_rebalance.ragged import Ints, ints, owners
from regent_rebalance.schedule import Batch, Limits, Schedule
from regent_rebalance.snapshot import Snapshot, listed

_TRIES = 32
"""Batches of more urgent changes that a change is tried in: effort is counted, never timed."""

_UNPLACED = -1


def schedule_of(snapshot: Snapshot, moves: Moves, limits: Limits) -> Schedule:
    """Every change in one batch, the same for the same input."""
    brokers = len(snapshot.brokers)
    room = DiskRoom.of(snapshot.brokers.disk_bytes, disk_used(snapshot), moves.received(brokers))
    packing = _Packing(moves, limits, room, brokers)
    packing.pack(_order(moves, brokers))
    return Schedule(
        limits=limits,
        batch=ints(packing.batch),
        batches=_batches(snapshot, moves, ints(packing.batch)),
        least_load=_busiest(moves, brokers),
        least_batches=_least_batches(moves, brokers, limits),
        notes=tuple(_notes(snapshot, moves, packing)),
    )


def _order(moves: Moves, brokers: int) -> Ints:
    """Changes with copies: urgent first, then by size; within a size the busiest brokers first."""
    busy = np.maximum(moves.sent(brokers), moves.received(brokers))
    load = np.zeros(len(moves), dtype=np.int64)
    np.maximum.at(load, owners(moves.target_offsets), busy[moves.targets])
    load = np.maximum(load, np.where(moves.source == NOBODY, 0, busy[moves.source]))
    order = np.lexsort((-load, -_size_class(moves.size), moves.urgency))
    return ints(order[moves.copies[order] > 0])


def _size_class(size: Ints) -> Ints:
    """The same for sizes within a factor of 1.25: the exponent and two more bits, exactly."""
    mantissa, exponent = np.frexp(np.maximum(1, size).astype(np.float64))
    return ints(4 * exponent + np.floor(8 * mantissa - 4))


@dataclass(slots=True)
class _Lane:
    """What one broker sends, or what it receives, in each batch. Batches are bits of ``full``."""

    full: int = 0
    copies: dict[int, int] = field(default_factory=dict)
    bytes: dict[int, int] = field(default_factory=dict)


class _Packing:
    """Batches that are being filled.

    Attributes:
        batch: The batch of each change.
        crowded: Changes whose targets have no room on their disks whatever comes before.
        room: The disks once all changes are placed.
    """

    def __init__(self, moves: Moves, limits: Limits, room: DiskRoom, brokers: int) -> None:
        self.batch = [_UNPLACED] * len(moves)
        self.crowded: list[int] = []
        self.room, self._limits = room, limits
        self._sending = [_Lane() for _ in range(brokers)]
        self._receiving = [_Lane() for _ in range(brokers)]
        self._copies, self._size = moves.copies.tolist(), moves.size.tolist()
        self._source, self._urgency = moves.source.tolist(), moves.urgency.tolist()
        self._targets, self._targets_at = moves.targets.tolist(), moves.target_offsets.tolist()
        self._gone, self._gone_at = moves.gone.tolist(), moves.gone_offsets.tolist()
        self._gone_bytes = moves.gone_bytes.tolist()
        self._load: list[int] = []  # of each batch's busiest broker
        self._urgent: list[int] = []  # the highest urgency in each batch
        self._more_urgent = [0] * len(URGENCIES)  # for each urgency the batches of higher ones

    def pack(self, order: Ints) -> None:
        """Place every change, those with copies in this order."""
        for change, copies in enumerate(self._copies):
            if copies == 0 and self._gone_at[change] < self._gone_at[change + 1]:
                self._open(0, self._urgency[change])
                self._settle(change, 0)  # frees disks, and waits for nothing
        waiting = order.tolist()
        while waiting:
            still = [change for change in waiting if not self._place_in_room(change)]
            if len(still) == len(waiting):
                self.crowded = still
                break
            waiting = still
        behind = len(self._load)
        for change in self.crowded:
            self._place(change, behind)
        last = max(0, len(self._load) - 1)
        self.batch = [last if batch == _UNPLACED else batch for batch in self.batch]

    def _place_in_room(self, change: int) -> bool:
        """Place a change unless the disks of its targets have no room as far as is known now."""
        targets = self._targets[self._targets_at[change] : self._targets_at[change + 1]]
        begin = self.room.first_batch(targets, self._size[change])
        if begin is not None:
            self._place(change, begin)
        return begin is not None

    def _place(self, change: int, begin: int) -> None:
        """Put a change into the first batch that takes it, from ``begin`` on."""
        targets = self._targets[self._targets_at[change] : self._targets_at[change + 1]]
        size, source = self._size[change], self._source[change]
        lanes = [(self._receiving[broker], 1) for broker in targets]
        if source != NOBODY:
            lanes.append((self._sending[source], len(targets)))
        closed = (1 << begin) - 1
        for lane, _ in lanes:
            closed |= lane.full
        urgency, tries = self._urgency[change], 0
        while True:
            batch = (~closed & (closed + 1)).bit_length() - 1
            if all(self._fits(lane, batch, copies, size, urgency) for lane, copies in lanes):
                break
            closed |= 1 << batch
            if batch < len(self._load) and self._urgent[batch] < urgency:
                tries += 1
                if tries == _TRIES:
                    closed |= self._more_urgent[urgency]
        self._add(lanes, batch, size, urgency)
        self._settle(change, batch)
        self.room.arrive(targets, size, batch)

    def _fits(self, lane: _Lane, batch: int, copies: int, size: int, urgency: int) -> bool:
        has, load = lane.copies.get(batch, 0), lane.bytes.get(batch, 0)
        new_load = load + copies * size
        guest = batch < len(self._load) and self._urgent[batch] < urgency
        if guest and new_load > self._load[batch]:
            return False
        if has == 0:
            return True
        limit = self._limits.bytes
        return has + copies <= self._limits.copies and (limit is None or new_load <= limit)

    def _add(self, lanes: list[tuple[_Lane, int]], batch: int, size: int, urgency: int) -> None:
        self._open(batch, urgency)
        for lane, copies in lanes:
            has = lane.copies[batch] = lane.copies.get(batch, 0) + copies
            load = lane.bytes[batch] = lane.bytes.get(batch, 0) + copies * size
            self._load[batch] = max(self._load[batch], load)
            limit = self._limits.bytes
            if has >= self._limits.copies or (limit is not None and load >= limit):
                lane.full |= 1 << batch

    def _open(self, batch: int, urgency: int) -> None:
        if batch == len(self._load):
            self._load.append(0)
            self._urgent.append(len(URGENCIES) - 1)
        for less in range(urgency + 1, self._urgent[batch] + 1):
            self._more_urgent[less] |= 1 << batch
        self._urgent[batch] = min(self._urgent[batch], urgency)

    def _settle(self, change: int, batch: int) -> None:
        self.batch[change] = batch
        for i in range(self._gone_at[change], self._gone_at[change + 1]):
            self.room.leave(self._gone[i], self._gone_bytes[i], batch)


def _batches(snapshot: Snapshot, moves: Moves, batch: Ints) -> tuple[Batch, ...]:
    count, brokers = int(batch.max(initial=-1)) + 1, len(snapshot.brokers)
    load = np.zeros((2, count * brokers), dtype=np.int64)
    has = moves.source != NOBODY
    copied = moves.copies * moves.size
    np.add.at(load[0], (batch * brokers + moves.source)[has], copied[has])
    of = owners(moves.target_offsets)
    np.add.at(load[1], batch[of] * brokers + moves.targets, moves.size[of])
    most = load.max(axis=0).reshape(count, brokers)
    copies, total = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(copies, batch, moves.copies)
    np.add.at(total, batch, copied)
    urgency = np.full(count, len(URGENCIES) - 1)
    np.minimum.at(urgency, batch, moves.urgency)
    partitions = np.bincount(batch, minlength=count)
    return tuple(
        Batch(
            partitions=int(partitions[i]),
            copies=int(copies[i]),
            bytes=int(total[i]),
            busiest=int(snapshot.brokers.ids[most[i].argmax()]) if most[i].any() else -1,
            load=int(most[i].max(initial=0)),
            urgency=URGENCIES[urgency[i]],
        )
        for i in range(count)
    )


def _busiest(moves: Moves, brokers: int) -> int:
    return int(max(moves.sent(brokers).max(initial=0), moves.received(brokers).max(initial=0)))


def _least_batches(moves: Moves, brokers: int, limits: Limits) -> int:
    """What passes in any case counts as much as the limit, so that it fills one batch."""

    def batches_of(brokers_of: Ints, amount: Ints, limit: int) -> int:
        totals = np.zeros(brokers, dtype=np.int64)
        np.add.at(totals, brokers_of, np.minimum(amount, limit))
        return int(-(-totals.max(initial=0) // limit))

    sends = (moves.source != NOBODY) & (moves.copies > 0)
    of = owners(moves.target_offsets)
    least = [
        int(len(moves) > 0),
        batches_of(moves.source[sends], moves.copies[sends], limits.copies),
        batches_of(moves.targets, np.ones(len(of), dtype=np.int64), limits.copies),
    ]
    if limits.bytes is not None:
        sent = moves.copies * moves.size
        least += [
            batches_of(moves.source[sends], sent[sends], limits.bytes),
            batches_of(moves.targets, moves.size[of], limits.bytes),
        ]
    return max(least)


def _notes(snapshot: Snapshot, moves: Moves, packing: _Packing) -> list[str]:
    lost = np.flatnonzero((moves.source == NOBODY) & (moves.copies > 0))
    notes = []
    if len(lost):
        names = listed([snapshot.name(int(moves.partition[i])) for i in lost])
        notes.append(
            f"{names}: no replica lives, so nothing can be copied: start one of the brokers that "
            "have them"
        )
    if packing.crowded:
        names = listed([snapshot.name(int(moves.partition[i])) for i in packing.crowded])
        over = [
            f"broker {snapshot.brokers.ids[broker]} lacks {lack:,} bytes in batch {batch + 1}"
            for broker, batch, lack in packing.room.overflows()
        ]
        notes.append(
            f"{names}: the disks of their new brokers have no room: {listed(over)}; delete data, "
            "add brokers, or exclude these"
        )
    return notes
