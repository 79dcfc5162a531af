"""Whose plan is made next. Pure.

A plan on Spark takes pods somewhere else, and may wait for room there as long as its job may take:
several are waited for side by side. A child process takes memory beside the controller: there is
one at a time.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from regent.kube.object_cache import ObjectKey


class Lane(enum.Enum):
    """What is done for an object; each has its own limit."""

    LOOK = enum.auto()
    """Whether a job on Spark is left that a Regent before this one has created."""
    PROCESS = enum.auto()
    """A plan by a child process."""
    JOB = enum.auto()
    """A plan by a job on Spark."""
    GIVE_UP = enum.auto()
    """Jobs on Spark that nobody needs are deleted."""


class Turn(NamedTuple):
    """Something to be done for an object.

    Attributes:
        goes_on: Whether a job is there already: it has its pods, and nothing is begun.
    """

    key: ObjectKey
    lane: Lane
    goes_on: bool = False


def next_turn(
    waiting: Iterable[Turn], under_way: Collection[Turn], limits: Mapping[Lane, int]
) -> Turn | None:
    """What is to begin now; None: nothing.

    For one object one thing is done at a time. What goes on is first, whatever the limit; no new
    job is begun before that is known. Then the namespace counts in which the least is under way,
    then who has waited longest: a namespace with many resources leaves room for the others.

    Args:
        waiting: Who has waited longest comes first.
        limits: How much is done at the same time, by lane.
    """
    busy = {turn.key for turn in under_way}
    waiting = tuple(turn for turn in waiting if turn.key not in busy)
    is_looking = any(turn.lane is Lane.LOOK for turn in (*waiting, *under_way))
    taken = Counter(turn.lane for turn in under_way)
    shares = Counter((turn.lane, turn.key.namespace) for turn in under_way)

    def has_room(turn: Turn) -> bool:
        if turn.lane is Lane.JOB and is_looking:
            return False
        return taken[turn.lane] < limits[turn.lane]

    def rank(turn: Turn) -> tuple[bool, int]:
        return not turn.goes_on, shares[turn.lane, turn.key.namespace]

    ready = (turn for turn in waiting if turn.goes_on or has_room(turn))
    return min(ready, key=rank, default=None)
