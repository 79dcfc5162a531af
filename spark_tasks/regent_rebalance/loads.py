"""What partitions carry over a window, in columns, and a snapshot that has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regent_rebalance.ragged import Ints, owners
from regent_rebalance.snapshot import UNKNOWN, Snapshot, listed


@dataclass(frozen=True, slots=True)
class Loads:
    """Loads of partitions, in any order; UNKNOWN where a load is not known.

    Attributes:
        sizes: Bytes.
        bytes_in, bytes_out: Bytes a second.
    """

    topics: Sequence[str]
    partitions: Sequence[int]
    sizes: Ints
    bytes_in: Ints
    bytes_out: Ints


def with_loads(snapshot: Snapshot, loads: Loads) -> tuple[Snapshot, list[str]]:
    """A snapshot with loads instead of its own rates, where they are known, and instead of sizes
    that are smaller; and what is not known, a sentence each."""
    rows = {key: row for row, key in enumerate(zip(loads.topics, loads.partitions, strict=True))}
    # A row more, for partitions that have none.
    row_of = np.array(
        [
            rows.get((snapshot.topics[topic], partition), len(rows))
            for topic, partition in zip(
                snapshot.topic.tolist(), snapshot.partition.tolist(), strict=True
            )
        ],
        dtype=np.int64,
    )
    notes = []

    def loaded(own: Ints, column: Ints, what: str) -> Ints:
        known = np.append(column, UNKNOWN)[row_of]
        missing = np.flatnonzero(known == UNKNOWN)
        if len(missing):
            names = listed([snapshot.name(index) for index in missing.tolist()])
            notes.append(
                f"the history has no {what} of {len(missing)} of {snapshot.partitions} partitions: "
                f"they stay as they are in the snapshot ({names})"
            )
        return np.where(known == UNKNOWN, own, known)

    of = owners(snapshot.offsets)
    # A copy takes what is there now, however small the log was before.
    present = np.where(snapshot.sizes == UNKNOWN, snapshot.copy_bytes()[of], snapshot.sizes)
    sizes = loaded(np.full(snapshot.partitions, UNKNOWN), loads.sizes, "size")
    changed = dataclasses.replace(
        snapshot,
        sizes=np.where(sizes[of] == UNKNOWN, snapshot.sizes, np.maximum(sizes[of], present)),
        bytes_in=loaded(snapshot.bytes_in, loads.bytes_in, "rate of bytes in"),
        bytes_out=loaded(snapshot.bytes_out, loads.bytes_out, "rate of bytes out"),
    )
    return changed, notes
