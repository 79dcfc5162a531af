"""What a snapshot does not know of loads and capacities, and what goals take instead."""

from __future__ import annotations

from typing import Final

import numpy as np

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Bools, Ints, owners
from regent_rebalance.snapshot import UNKNOWN, Snapshot, listed

_IN_FILES: Final = {
    "disk": "diskBytes",
    "network in": "networkInBytes",
    "network out": "networkOutBytes",
}
"""For each quantity the capacity of a broker in a snapshot."""


def uncounted_loads(snapshot: Snapshot, name: str, each: Ints) -> str:
    """The partitions that count as 0 because nobody knows their load; empty if there are none.

    Args:
        name: Of the quantity.
        each: Its amount by partition, as the snapshot has it.
    """
    if name == "disk":
        largest = np.full(snapshot.partitions, UNKNOWN)
        np.maximum.at(largest, owners(snapshot.offsets), snapshot.sizes)
        unknown, what = largest == UNKNOWN, "size"
    else:
        unknown, what = each == UNKNOWN, "rate"
    missing = np.flatnonzero(unknown).tolist()
    if not missing:
        return ""
    return (
        f"{len(missing)} of {snapshot.partitions} partitions have no known {what} and count as 0: "
        f"{listed([snapshot.name(index) for index in missing])}"
    )


def equal_capacities(snapshot: Snapshot, problem: Problem, room: Ints) -> str:
    """The brokers because of which a distribution goal takes all for equally large; empty if all
    capacities are known."""
    unknown = problem.keeps & (room <= 0)
    if not unknown.any():
        return ""
    return f"brokers {_ids(snapshot, unknown)} have no known capacity: all count as equally large"


def unchecked_capacities(
    snapshot: Snapshot, problem: Problem, goal: str, name: str, room: Ints, *, led: bool
) -> str:
    """The brokers that a capacity goal does not look at; empty if there are none.

    Args:
        name: Of the quantity.
        led: Whether leaders alone bring it: excluded brokers may still get to lead.

    Raises:
        InvalidInputError: A plan could fill a broker whose capacity is not known.
    """
    unknown = problem.keeps & (room == UNKNOWN)
    could_fill = unknown if led else unknown & problem.takes
    if could_fill.any():
        way_out = "drain them" if led else "exclude or drain them"
        raise InvalidInputError(
            f"{goal}: the snapshot has no capacity of brokers {_ids(snapshot, could_fill)}, and a "
            f"plan could fill them: add {_IN_FILES[name]}, {way_out}, or drop the goal"
        )
    if not unknown.any():
        return ""
    return (
        f"brokers {_ids(snapshot, unknown)} have no known capacity, are not checked, and get "
        "nothing new"
    )


def _ids(snapshot: Snapshot, brokers: Bools) -> str:
    return listed(snapshot.brokers.ids[brokers].tolist())
