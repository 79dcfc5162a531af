"""Partitions that are alike for a flow: same rooms in racks, same departures.

A partition is *plain* if what must happen to it splits into independent parts:

- from a rack that holds too many of its replicas a known number leave, whichever they are;
- replicas on dead or drained brokers leave;
- a known number of replicas arrive, in racks with room;
- and a partition with nothing of that kind may move one replica, chosen beforehand; where it is to
  stay spread over as many racks, the only one in a rack stays there, or goes to one without any.

Only which of the partitions of a class moves is open then, and that is chosen afterwards. So a
network of classes is realised exactly; it is a restriction of the full one, not a relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Bools, Counts, Ints, ints, owners

_BITS = 62


@dataclass(frozen=True, slots=True)
class Groups:
    """Replicas of which a known number leave: those of one partition in one crowded rack.

    Attributes:
        replica: Positions of the replicas, group by group.
        group: The group of each.
        leaving: For each group how many leave.
        kind: For each group its class.
    """

    replica: Ints
    group: Ints
    leaving: Ints
    kind: Ints


@dataclass(frozen=True, slots=True)
class Classes:
    """What plain partitions do.

    Attributes:
        plain: Whether a partition is plain.
        groups: Forced departures with a choice.
        gone: Positions of replicas that leave for certain.
        arrivals: For each partition how many new replicas it gets for certain.
        optional: For each partition the position of the replica that it may move, or -1.
        rooms: For each kind of rooms: how many new replicas each rack may take.
        room_kind: For each partition its row in ``rooms``, -1 if it gets none.
    """

    plain: Bools
    groups: Groups
    gone: Ints
    arrivals: Ints
    optional: Ints
    rooms: Ints
    room_kind: Ints


def classes_of(problem: Problem, own: Bools, optional: Ints) -> Classes:
    """Sort partitions into classes.

    Args:
        own: Partitions that are to have nodes of their own in any case.
        optional: For each partition the position of the replica that it may move.
    """
    of = owners(problem.offsets)
    kept = problem.kept_in_rack()
    allowed = problem.allowed_in_rack(kept)
    excess = np.maximum(0, kept - allowed)
    forced, living = excess.sum(axis=1), kept.sum(axis=1)
    surplus = living - forced - problem.factor
    plain = ~own & ~((surplus > 0) & (forced > 0))
    shrinks = plain & (surplus > 0)
    arrivals = np.where(plain, np.maximum(0, -surplus), 0)
    stays_alive = problem.keeps[problem.replicas]
    gone = np.flatnonzero(plain[of] & ~stays_alive)
    groups = _groups(problem, plain, shrinks, np.where(shrinks, surplus, 0), excess)
    busy = (forced > 0) | (arrivals > 0) | shrinks | (living < np.diff(problem.offsets))
    free = plain & ~busy
    chosen = np.where(free, optional, -1)
    takers = np.bincount(problem.rack[problem.takes], minlength=problem.racks) > 0
    rooms = np.maximum(0, allowed - kept)
    moving = np.flatnonzero(free)
    own_rack = problem.rack[problem.replicas[optional[moving]]]
    alone = (kept[moving, own_rack] == 1) & (problem.least_racks(kept)[moving] > 0)
    rooms[moving[alone]] *= kept[moving[alone]] == 0
    rooms[moving, own_rack] += 1
    most = np.maximum(arrivals, 1).astype(np.int16)
    rooms = np.minimum(rooms, most[:, None]) * takers
    used = np.flatnonzero(plain & (free | (arrivals > 0)))
    # Partitions of a class get as many new replicas: distinctness is counted by partition.
    keys = np.column_stack([rooms[used], most[used]])
    kinds, number = unique_rows(keys)
    room_kind = np.full(problem.partitions, -1, dtype=np.int64)
    room_kind[used] = number
    return Classes(plain, groups, gone, arrivals, chosen, kinds[:, :-1], room_kind)


def _groups(
    problem: Problem, plain: Bools, shrinks: Bools, surplus: Ints, excess: Counts
) -> Groups:
    of = owners(problem.offsets)
    rack = problem.rack[problem.replicas]
    crowded = plain[of] & problem.keeps[problem.replicas] & (excess[of, rack] > 0)
    crowded |= shrinks[of] & problem.keeps[problem.replicas]
    replica = np.flatnonzero(crowded)
    key = of[replica] * (problem.racks + 1) + np.where(
        shrinks[of[replica]], problem.racks, rack[replica]
    )
    order = np.argsort(key, kind="stable")
    replica, key = replica[order], key[order]
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    group = np.cumsum(np.diff(key, prepend=-1) != 0) - 1
    first = replica[begins]
    leaving = np.where(shrinks[of[first]], surplus[of[first]], excess[of[first], rack[first]])
    # A class has the same brokers and the same number that leave.
    lengths = np.diff(np.append(begins, len(replica)))
    width = int(lengths.max(initial=0))
    rows = np.full((len(begins), width + 1), -1, dtype=np.int64)
    column = np.arange(len(replica)) - np.repeat(begins, lengths)
    broker_order = np.lexsort((problem.replicas[replica], group))
    replica = replica[broker_order]
    rows[group, column] = problem.replicas[replica]
    rows[:, width] = leaving
    _, kind = unique_rows(rows)
    return Groups(replica, group, leaving, kind)


def unique_rows(rows: Ints | Counts) -> tuple[Ints, Ints]:
    """Distinct rows and, for each row, which of them it is. Values are at least -1."""
    if rows.size == 0:
        return ints(rows[:1]), np.zeros(len(rows), dtype=np.int64)
    bits = [int(column.max() + 1).bit_length() for column in rows.T]
    if sum(bits) <= _BITS:
        keys = np.zeros(len(rows), dtype=np.int64)
        for column, width in zip(rows.T, bits, strict=True):
            keys = (keys << width) | (column + 1)
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return ints(rows[first]), number.reshape(-1)


def designate(problem: Problem, *, rounds: int = 64) -> Ints:
    """For each partition the replica that it may move: one on a broker with much to give.

    Partitions take turns in rounds, so that what brokers have above their limits is spread over
    the partitions that could relieve them.
    """
    loads = np.bincount(problem.replicas, minlength=problem.brokers).astype(np.float64)
    limit = np.where(problem.keeps, problem.costs.most, 0)
    excess = (loads - limit) / np.maximum(loads, 1)
    left = excess * loads
    chosen = np.full(problem.partitions, -1, dtype=np.int64)
    replication = np.diff(problem.offsets)
    for turn in range(rounds):
        members = np.arange(turn, problem.partitions, rounds)
        if len(members) == 0:
            break
        lengths = replication[members]
        best = np.full(len(members), -np.inf)
        pick = problem.offsets[members].copy()
        for column in range(int(lengths.max())):
            has = np.flatnonzero(lengths > column)
            replica = problem.offsets[members[has]] + column
            score = left[problem.replicas[replica]]
            better = score > best[has]
            best[has[better]] = score[better]
            pick[has[better]] = replica[better]
        chosen[members] = pick
        left -= np.bincount(problem.replicas[pick], minlength=problem.brokers)
    return chosen
