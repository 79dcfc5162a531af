"""Which log directories new replicas will fill, on brokers that have several.

A reassignment names brokers, not directories. The broker puts a new replica where the fewest are
(LogManager.nextLogDirs), whatever room there is and however large it becomes. So a broker with room
may have a directory without, and a plan cannot help it: it can say so beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from regent_rebalance.goals import DISK_CAPACITY, Goals
from regent_rebalance.moves import Moves
from regent_rebalance.ragged import Ints, owners
from regent_rebalance.snapshot import LogDir, Snapshot, listed


@dataclass(frozen=True, slots=True)
class Filled:
    """A directory that will have more than its limit.

    Attributes:
        broker: Position of the broker.
        limit: Bytes that it may have.
        used_bytes: What it will have.
        arriving: How many new replicas are in that.
    """

    broker: int
    directory: LogDir
    limit: int
    used_bytes: int
    arriving: int


def filled(snapshot: Snapshot, moves: Moves, batch: Ints, *, share: Fraction) -> list[Filled]:
    """Directories that get new replicas and then have more than a share of their capacity.

    New replicas arrive batch by batch, the largest of a batch first; where several directories have
    equally few, the one with the most room takes it. What leaves a broker is not taken off: nobody
    knows of which directory.
    """
    of = owners(moves.target_offsets)
    order = np.lexsort((-moves.size[of], batch[of]))
    found = []
    for broker, directories in enumerate(snapshot.brokers.log_dirs):
        arriving = order[moves.targets[order] == broker] if directories else order[:0]
        used = [each.used_bytes for each in directories]
        count = [each.replicas for each in directories]
        for size in moves.size[of][arriving].tolist():
            room = [each.bytes - has for each, has in zip(directories, used, strict=True)]
            place = min(range(len(used)), key=lambda i: (count[i], -room[i], i))
            used[place] += size
            count[place] += 1
        for each, has, replicas in zip(directories, used, count, strict=True):
            limit = int(share * each.bytes)
            if replicas > each.replicas and has > limit:
                found.append(Filled(broker, each, limit, has, replicas - each.replicas))
    return found


def log_dir_notes(snapshot: Snapshot, goals: Goals, moves: Moves, batch: Ints) -> list[str]:
    """A sentence that names the directories; none if all have room.

    The limit is that of DiskCapacityGoal if that counts, else the whole capacity.
    """
    share = Fraction(str(goals.capacity_threshold)) if goals.has(DISK_CAPACITY) else Fraction(1)
    over = [
        f"{each.directory.path} of broker {snapshot.brokers.ids[each.broker]} gets about "
        f"{each.arriving:,} replicas and then has {each.used_bytes:,} bytes, "
        f"{each.used_bytes - each.limit:,} above its limit of {each.limit:,}"
        for each in filled(snapshot, moves, batch, share=share)
    ]
    if not over:
        return []
    return [
        f"log directories without room: {listed(over)}; Kafka puts a new replica where the fewest "
        "are: move replicas between the broker's directories first (log_dirs of "
        "kafka-reassign-partitions), or exclude the broker"
    ]
