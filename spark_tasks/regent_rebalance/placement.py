"""A set of brokers for each partition, given as what leaves and what arrives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Bools, Ints, contains, offsets_of, owners


@dataclass(frozen=True, slots=True)
class Placement:
    """A realised placement.

    Attributes:
        leaves: For each present replica whether it goes.
        partition: For each new replica its partition, ascending.
        broker: For each new replica its broker.
    """

    leaves: Bools
    partition: Ints
    broker: Ints

    def loads(self, problem: Problem) -> Ints:
        """Replicas of movable partitions on each broker."""
        stay = np.bincount(problem.replicas[~self.leaves], minlength=problem.brokers)
        return stay + np.bincount(self.broker, minlength=problem.brokers)

    def cost(self, problem: Problem) -> int:
        """Moves and penalties together: what the dual bound bounds."""
        return len(self.broker) + problem.costs.penalty(self.loads(problem))

    def lists(self, problem: Problem) -> tuple[Ints, Ints]:
        """The new replica lists, as offsets and brokers.

        A new replica stands where one left, so that the others keep their places; what has no such
        place comes at the end.
        """
        of = owners(problem.offsets)
        leaving = np.flatnonzero(self.leaves)
        gone = np.bincount(of[leaving], minlength=problem.partitions)
        new = np.bincount(self.partition, minlength=problem.partitions)
        rank_new = _rank(self.partition)
        replacing = rank_new < gone[self.partition]
        places = leaving[offsets_of(gone)[self.partition[replacing]] + rank_new[replacing]]
        brokers, stays = problem.replicas.copy(), ~self.leaves
        brokers[places], stays[places] = self.broker[replacing], True
        ends = problem.offsets[self.partition[~replacing] + 1]
        brokers, stays = (
            np.insert(brokers, ends, self.broker[~replacing]),
            np.insert(stays, ends, True),
        )
        return offsets_of(np.diff(problem.offsets) - gone + new), brokers[stays]


def _rank(ascending: Ints) -> Ints:
    """For each value how many equal ones come before it."""
    first = np.flatnonzero(np.diff(ascending, prepend=-1))
    lengths = np.diff(np.append(first, len(ascending)))
    return np.arange(len(ascending)) - np.repeat(first, lengths)


def spread(values: Ints, counts: Ints) -> Ints:
    """Each value as often as counted, as evenly mixed as can be."""
    flat = np.repeat(values, counts)
    rank = np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts)
    # Half a step before the first, as in a Bresenham line; exact in integers up to 2^31 units.
    position = ((2 * rank + 1) << 31) // np.repeat(2 * counts, counts)
    return flat[np.argsort(position, kind="stable")]


def deal(units: Ints, brokers: Ints, held: tuple[Ints, Ints], brokers_in_all: int) -> bool:
    """Exchange ``brokers`` in place until no partition gets one twice or one that it holds.

    Args:
        units: The partition of each unit.
        brokers: The broker of each unit; rearranged.
        held: Partition and broker of replicas that exist.

    Returns:
        False if no exchange of two helps.
    """
    taken = np.sort(held[0] * brokers_in_all + held[1])
    keys = units * brokers_in_all + brokers
    order = np.argsort(keys, kind="stable")
    twice = np.zeros(len(keys), dtype=np.bool_)
    twice[order[1:]] = np.diff(keys[order]) == 0
    conflicts = np.flatnonzero(twice | contains(taken, keys))
    if len(conflicts) == 0:
        return True
    counts = dict(zip(*(a.tolist() for a in np.unique(keys, return_counts=True)), strict=True))
    blocked = set(taken[contains(np.unique(units), taken // brokers_in_all)].tolist())

    def free(partition: int, broker: int) -> bool:
        key = partition * brokers_in_all + broker
        return key not in blocked and not counts.get(key)

    partitions, places = units.tolist(), brokers.tolist()
    for i in conflicts.tolist():
        key = partitions[i] * brokers_in_all + places[i]
        if key not in blocked and counts[key] == 1:
            continue  # an exchange has mended it
        for step in range(1, len(places)):
            j = (i + step) % len(places)
            if free(partitions[i], places[j]) and free(partitions[j], places[i]):
                for unit in (i, j):
                    counts[partitions[unit] * brokers_in_all + places[unit]] -= 1
                places[i], places[j] = places[j], places[i]
                for unit in (i, j):
                    key = partitions[unit] * brokers_in_all + places[unit]
                    counts[key] = counts.get(key, 0) + 1
                break
        else:
            return False
    brokers[:] = places
    return True
