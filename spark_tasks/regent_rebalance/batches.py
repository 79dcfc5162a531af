"""Packs a plan's changes into batches: first fit, urgent changes first, large before small.

Within one urgency changes of similar size share a batch, as a batch takes as long as its busiest
broker. A less urgent change may fill a more urgent batch as long as that takes no longer for it.
Nothing is started before the disks of its targets have room: what leaves frees its bytes when its
batch has ended.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from regent_rebalance.disk_room import DiskRoom
from regent_rebalance.moves import NOBODY, URGENCIES, Moves, disk_used
from regent_rebalance.packing import NOTHING, PLAIN, UNPLACED, Batches, Work, compiled_packing
from regent_rebalance.ragged import Ints, ints, offsets_of, owners
from regent_rebalance.schedule import Batch, Limits, Schedule
from regent_rebalance.snapshot import Snapshot, listed

_FEW = 2_000
"""So many changes are packed before Numba has been loaded."""

_T = TypeVar("_T", Batches, Work)


def schedule_of(snapshot: Snapshot, moves: Moves, limits: Limits, *, few: int = _FEW) -> Schedule:
    """Every change in one batch, the same for the same input.

    Args:
        few: So many changes are packed without compiled code, which takes a while to load.
    """
    brokers = len(snapshot.brokers)
    room = DiskRoom.of(snapshot.brokers.disk_bytes, disk_used(snapshot), moves.received(brokers))
    packing = _Packing(moves, limits, room, brokers, few)
    packing.pack(_order(moves, brokers))
    batch = packing.batch
    return Schedule(
        limits=limits,
        batch=batch,
        batches=_batches(snapshot, moves, batch),
        least_load=_busiest(moves, brokers),
        least_batches=_least_batches(moves, brokers, limits),
        notes=tuple(_notes(snapshot, moves, packing)),
        short_of_room=tuple(int(snapshot.brokers.ids[broker]) for broker in room.short),
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


def _work(moves: Moves, limits: Limits, brokers: int) -> Work:
    """Lanes of what brokers receive, and then of what they send."""
    sends = (moves.source != NOBODY) & (moves.copies > 0)
    begin = offsets_of(moves.copies + sends)
    lane, copies = np.empty(begin[-1], dtype=np.int64), np.ones(begin[-1], dtype=np.int64)
    lane[np.arange(len(moves.targets)) + offsets_of(sends)[owners(moves.target_offsets)]] = (
        moves.targets
    )
    last = begin[1:][sends] - 1
    lane[last] = moves.source[sends] + brokers
    copies[last] = moves.copies[sends]
    most = limits.bytes if limits.bytes is not None else int(np.iinfo(np.int64).max)
    return Work(moves.size, moves.urgency, begin, lane, copies, 2 * brokers, limits.copies, most)


def _lists(arrays: _T) -> _T:
    """The same with lists, whose numbers Python reads faster."""
    made: Any = type(arrays)
    return cast(
        _T, made(*(each.tolist() if isinstance(each, np.ndarray) else each for each in arrays))
    )


def _empty_batches(work: Work) -> Batches:
    changes, entries = len(work.size), 1
    while entries < 2 * len(work.lane):
        entries *= 2
    zeros = partial(np.zeros, dtype=np.int64)
    return Batches(
        of=np.full(changes, UNPLACED, dtype=np.int64),
        used=zeros(1),
        load=zeros(changes + 1),
        urgent=np.full(changes + 1, len(URGENCIES) - 1, dtype=np.int64),
        key=np.full(entries, NOTHING, dtype=np.int64),
        copies=zeros(entries),
        bytes=zeros(entries),
        next=zeros(entries),
    )


class _Packing:
    """Places changes with disks in mind.

    Attributes:
        batch: The batch of each change.
        crowded: Changes whose targets have no room on their disks whatever comes before.
        room: The disks once all changes are placed.
    """

    def __init__(
        self, moves: Moves, limits: Limits, room: DiskRoom, brokers: int, few: int
    ) -> None:
        self.crowded: list[int] = []
        self.room = room
        self._frees = (moves.copies == 0) & (np.diff(moves.gone_offsets) > 0)
        self._size: list[int] = moves.size.tolist()
        self._targets: list[int] = moves.targets.tolist()
        self._targets_at = moves.target_offsets.tolist()
        self._gone, self._gone_at = moves.gone.tolist(), moves.gone_offsets.tolist()
        self._gone_bytes = moves.gone_bytes.tolist()
        work = _work(moves, limits, brokers)
        batches = _empty_batches(work)
        self._packing = PLAIN if len(moves) <= few else compiled_packing()
        self._is_plain = self._packing is PLAIN
        self._work = _lists(work) if self._is_plain else work
        self._batches = _lists(batches) if self._is_plain else batches

    @property
    def batch(self) -> Ints:
        placed = ints(cast(npt.ArrayLike, self._batches.of))
        last = max(0, self._batches.used[0] - 1)
        return np.where(placed == UNPLACED, last, placed)

    def pack(self, order: Ints) -> None:
        """Place every change, those with copies in this order."""
        batches = self._batches
        for change in np.flatnonzero(self._frees).tolist():
            batches.of[change], batches.used[0] = 0, 1
            self._free(change, 0)  # waits for nothing
        if self.room.is_ample:
            self._packing.place_all(
                self._work, batches, order.tolist() if self._is_plain else order
            )
            return
        waiting = order.tolist()
        while waiting:
            still = [change for change in waiting if not self._place_in_room(change)]
            if len(still) == len(waiting):
                self.crowded = still
                break
            waiting = still
        behind = batches.used[0]
        for change in self.crowded:
            self._place(change, behind)

    def _place_in_room(self, change: int) -> bool:
        """Place a change unless the disks of its targets have no room as far as is known now."""
        begin = self.room.first_batch(self._targets_of(change), self._size[change])
        if begin is not None:
            self._place(change, begin)
        return begin is not None

    def _place(self, change: int, begin: int) -> None:
        """Put a change into the first batch that takes it, from ``begin`` on."""
        batch = self._packing.place(self._work, self._batches, change, begin)
        self._free(change, batch)
        self.room.arrive(self._targets_of(change), self._size[change], batch)

    def _targets_of(self, change: int) -> list[int]:
        return self._targets[self._targets_at[change] : self._targets_at[change + 1]]

    def _free(self, change: int, batch: int) -> None:
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
