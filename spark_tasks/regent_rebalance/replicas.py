"""Which replicas move: by the network of classes; by the full one if that proves no optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.certificate import dual_bound
from regent_rebalance.class_network import solve_class_network
from regent_rebalance.classes import designate
from regent_rebalance.full_network import arcs_of_full_network, solve_full_network
from regent_rebalance.placement import Placement
from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Ints, ranks

MAX_ARCS = 16_000_000
"""Arcs of the largest full network that is tried: about 1.6 GiB."""

CLASSES, FULL, SEARCH = "classes", "full network", "search"


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """A placement and what is proved of it.

    Attributes:
        bound: No placement has fewer moves and penalties together.
        cost: What this one has. It is optimal if they are equal.
        method: The network that it came from.
    """

    placement: Placement
    bound: int
    cost: int
    method: str


def plan_replicas(problem: Problem, *, max_arcs: int = MAX_ARCS) -> ReplicaPlan:
    """The placement with the fewest hard limits broken, then soft ones, then moves."""
    if problem.partitions == 0:
        empty = np.zeros(0, dtype=np.int64)
        placement = Placement(np.zeros(0, dtype=np.bool_), empty, empty)
        cost = placement.cost(problem)
        return ReplicaPlan(placement, cost, cost, CLASSES)
    shuffle = shuffled(problem.partitions)
    own = np.zeros(problem.partitions, dtype=np.bool_)
    quick, prices = solve_class_network(problem, own, designate(problem), shuffle)
    bound = dual_bound(problem, prices)
    if quick is not None:
        cost = quick.cost(problem)
        if cost == bound or arcs_of_full_network(problem) > max_arcs:
            return ReplicaPlan(quick, bound, cost, CLASSES)
    placement, prices = solve_full_network(problem, shuffle)
    return ReplicaPlan(
        placement, max(bound, dual_bound(problem, prices)), placement.cost(problem), FULL
    )


def shuffled(partitions: int) -> Ints:
    """For each partition its place in an order that has nothing to do with names or sizes.

    The finalizer of SplitMix64: the same on every machine and with every version of NumPy.
    """
    z = np.arange(1, partitions + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ranks(z ^ (z >> np.uint64(31)))
