"""Who leads: the fewest changes that bring leaders within limits, once replicas are placed.

Each partition sends one unit to one of its replicas, at no cost to its present leader and at cost 1
to another; brokers pay for being outside their limits. The network has an arc for each replica.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.flow import Network, Solution
from regent_rebalance.ragged import Bools, Ints, ints, owners, positions


@dataclass(frozen=True, slots=True)
class LeaderPlan:
    """Leaders and what is proved of them.

    Attributes:
        leader: For each partition which of its replicas leads, 0 the first.
        bound: No choice has fewer changes and penalties together.
        cost: What this one has. It is optimal if they are equal.
    """

    leader: Ints
    bound: int
    cost: int


def plan_leaders(
    offsets: Ints, replicas: Ints, present: Ints, costs: BrokerCosts, *, fixed: Bools
) -> LeaderPlan:
    """Choose leaders.

    Args:
        offsets: Where the replicas of each partition begin.
        replicas: Their brokers.
        present: Which replica of each partition leads now, -1 if none of these does.
        costs: Limits on the leaders of each broker.
        fixed: Partitions whose present leader stays.
    """
    changes = _changes(offsets, present)
    first = np.maximum(present, 0)
    now = np.bincount(replicas[offsets[:-1] + first], minlength=len(costs.least))
    if costs.penalty(now) == 0 and not (present < 0).any():
        return LeaderPlan(first, 0, 0)
    allowed = ~fixed[owners(offsets)] | (changes == 0)
    allowed |= present[owners(offsets)] < 0
    chosen, prices = _solve(offsets, replicas, changes, allowed, costs)
    leader = positions(offsets)[chosen]
    load = np.bincount(replicas[chosen], minlength=len(costs.least))
    cost = int(changes[chosen].sum()) + costs.penalty(load)
    pays = np.where(allowed, changes + prices[replicas], 1 << 40)
    bound = int(np.minimum.reduceat(pays, offsets[:-1]).sum())
    bound += costs.least_with_prices(prices, len(present))
    return LeaderPlan(leader, bound, cost)


def _changes(offsets: Ints, present: Ints) -> Ints:
    """For each replica whether leading is a change. Where nobody leads, any choice is the same."""
    of = owners(offsets)
    return ints((positions(offsets) != present[of]) & (present[of] >= 0))


def _solve(
    offsets: Ints, replicas: Ints, changes: Ints, allowed: Bools, costs: BrokerCosts
) -> tuple[Ints, Ints]:
    """The position of each partition's leading replica, and the price of leading on each broker."""
    partitions, network = len(offsets) - 1, Network()
    broker = network.add_nodes(len(costs.least))
    sink = network.add_nodes(1)
    node = network.add_nodes(partitions)
    for capacity, cost in costs.segments(partitions):
        network.add_arcs(broker, np.repeat(sink, len(broker)), capacity, cost)
    usable = np.flatnonzero(allowed)
    arcs = network.add_arcs(
        node[owners(offsets)[usable]], broker[replicas[usable]], 1, changes[usable]
    )
    network.supply(node, 1)
    network.supply(sink, -partitions)
    solution: Solution = network.solve()
    distances = solution.prices()
    chosen = usable[solution.flows[arcs] > 0]
    return chosen, distances[sink] - distances[broker] - costs.soft
