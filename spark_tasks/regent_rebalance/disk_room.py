"""Room on brokers' disks while batches are carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regent_rebalance.ragged import Ints
from regent_rebalance.snapshot import UNKNOWN


@dataclass(slots=True)
class _Disk:
    """One broker's.

    Attributes:
        used: Bytes in use while each batch is carried out; the last value holds ever after.
    """

    capacity: int
    used: Ints

    def until(self, batch: int) -> None:
        """Make place for changes up to a batch."""
        missing = batch + 1 - len(self.used)
        if missing > 0:
            more = max(missing, len(self.used))
            self.used = np.append(self.used, np.full(more, self.used[-1]))

    def first_batch(self, size: int) -> int | None:
        """The first batch from which on there is room; None if there is none in the end."""
        peak = np.maximum.accumulate(self.used[::-1])[::-1]
        fits = peak + size <= self.capacity
        return int(np.argmax(fits)) if fits[-1] else None


class DiskRoom:
    """Brokers whose disks could overflow before everything that is to leave them has left."""

    def __init__(self, disks: dict[int, _Disk]) -> None:
        self._disks = disks

    @classmethod
    def of(cls, capacity: Ints, used: Ints, received: Ints) -> DiskRoom:
        """Only what gets something, and has not room for all of it at once, need be watched."""
        tight = (capacity != UNKNOWN) & (received > 0) & (used + received > capacity)
        return cls(
            {
                int(broker): _Disk(int(capacity[broker]), np.array([used[broker]]))
                for broker in np.flatnonzero(tight)
            }
        )

    @property
    def short(self) -> tuple[int, ...]:
        """Brokers that are watched, by position, in order."""
        return tuple(sorted(self._disks))

    @property
    def is_ample(self) -> bool:
        """Whether no disk could overflow, whatever the order is."""
        return not self._disks

    def first_batch(self, brokers: Sequence[int], size: int) -> int | None:
        """The first batch from which on all of these have room; None if one never has."""
        first = 0
        for broker in brokers:
            disk = self._disks.get(broker)
            if disk is not None:
                batch = disk.first_batch(size)
                if batch is None:
                    return None
                first = max(first, batch)
        return first

    def arrive(self, brokers: Sequence[int], size: int, batch: int) -> None:
        """From this batch on these have more on their disks."""
        for broker in brokers:
            self._change(broker, size, batch)

    def leave(self, broker: int, size: int, batch: int) -> None:
        """After this batch a broker has less on its disks."""
        self._change(broker, -size, batch + 1)

    def overflows(self) -> list[tuple[int, int, int]]:
        """Brokers that lack room, by position; the batch in which they lack most, and how much."""
        found = []
        for broker, disk in self._disks.items():
            batch = int(disk.used.argmax())
            lack = int(disk.used[batch]) - disk.capacity
            if lack > 0:
                found.append((broker, batch, lack))
        return found

    def _change(self, broker: int, size: int, batch: int) -> None:
        disk = self._disks.get(broker)
        if disk is not None:
            disk.until(batch)
            disk.used[batch:] += size
