"""Who leads: the fewest changes that bring leaders within limits, once replicas are placed.

Each partition sends one unit to one of its replicas, at no cost to its present leader and at cost 1
to another; brokers pay for being outside their limits.

Most partitions keep their leader. So a small network comes first, with an arc for each pair of
brokers: leaders pass from one to the other in as many partitions as the two share. It says how many
are to pass, and its prices are a bound for all partitions. Enough partitions of each such pair then
choose for themselves, exactly. Where that costs more than the bound, all partitions choose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.flow import Network
from regent_rebalance.ragged import Bools, Ints, ints, owners, positions

_SHARE = 2
"""Some partitions are in two pairs: so more choose than are to pass."""


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
    offsets: Ints,
    replicas: Ints,
    present: Ints,
    costs: BrokerCosts,
    *,
    fixed: Bools,
    share: int = _SHARE,
) -> LeaderPlan:
    """Choose leaders.

    Args:
        offsets: Where the replicas of each partition begin.
        replicas: Their brokers.
        present: Which replica of each partition leads now, -1 if none of these does.
        costs: Limits on the leaders of each broker.
        fixed: Partitions whose present leader stays.
        share: How many partitions of a pair of brokers choose for each one that is to pass. With
            too few the exact answer takes longer.
    """
    first = np.maximum(present, 0)
    now = np.bincount(replicas[offsets[:-1] + first], minlength=len(costs.least))
    if costs.penalty(now) == 0 and not (present < 0).any():
        return LeaderPlan(first, 0, 0)
    choice = _Choice.of_partitions(offsets, replicas, present, fixed)
    passing, prices = _solve_pairs(choice, costs)
    bound = _bound(choice, costs, prices)
    leader, prices = _solve(choice, costs, _candidates(choice, passing, share))
    bound = max(bound, _bound(choice, costs, prices))
    if _cost(choice, costs, leader) > bound:
        leader, prices = _solve(choice, costs, np.ones(choice.partitions, dtype=np.bool_))
        bound = max(bound, _bound(choice, costs, prices))
    return LeaderPlan(leader, bound, _cost(choice, costs, leader))


@dataclass(frozen=True, slots=True)
class _Choice:
    """What each partition may choose.

    Attributes:
        offsets, replicas: Replicas of each partition.
        present: Which of them leads, -1 for none.
        of: For each replica its partition.
        change: For each replica whether leading is a change. Where nobody leads, no choice is.
        allowed: For each replica whether it may lead.
    """

    offsets: Ints
    replicas: Ints
    present: Ints
    of: Ints
    change: Ints
    allowed: Bools

    @classmethod
    def of_partitions(cls, offsets: Ints, replicas: Ints, present: Ints, fixed: Bools) -> _Choice:
        of = owners(offsets)
        unled = present[of] < 0
        change = ints((positions(offsets) != present[of]) & ~unled)
        allowed = ~fixed[of] | (change == 0)
        return cls(offsets, replicas, present, of, change, allowed)

    @property
    def partitions(self) -> int:
        return len(self.present)

    def leading(self) -> Ints:
        """The broker that leads each partition that has a leader."""
        led = self.present >= 0
        return ints(self.replicas[(self.offsets[:-1] + self.present)[led]])


def _solve_pairs(choice: _Choice, costs: BrokerCosts) -> tuple[Ints, Ints]:
    """How many leaders pass from each broker to each other, as a square; the price of leading.

    A partition may be counted for two pairs: so the flow is no plan, and costs no more than one.
    """
    brokers, network = len(costs.least), Network()
    broker = network.add_nodes(brokers)
    sink = network.add_nodes(1)
    unled = np.flatnonzero(choice.present < 0)
    node = network.add_nodes(len(unled))
    _add_limits(network, broker, sink, costs, choice.partitions)
    shared = _shared(choice, brokers)
    pairs = np.flatnonzero(shared)
    arcs = network.add_arcs(broker[pairs // brokers], broker[pairs % brokers], shared[pairs], 1)
    free = np.flatnonzero(choice.present[choice.of] < 0)
    place = np.searchsorted(unled, choice.of[free])
    network.add_arcs(node[place], broker[choice.replicas[free]], 1, 0)
    network.supply(broker, ints(np.bincount(choice.leading(), minlength=brokers)))
    network.supply(node, 1)
    network.supply(sink, -choice.partitions)
    solution = network.solve()
    passing = np.zeros(brokers * brokers, dtype=np.int64)
    passing[pairs] = solution.flows[arcs]
    distances = solution.prices()
    return passing, distances[sink] - distances[broker] - costs.soft


def _pairs(choice: _Choice, brokers: int) -> tuple[Ints, Ints]:
    """Replicas that might lead instead; for each the pair of the leader and itself."""
    others = np.flatnonzero(choice.allowed & (choice.change > 0))
    at = choice.offsets[:-1] + np.maximum(choice.present, 0)
    return others, ints(choice.replicas[at])[choice.of[others]] * brokers + choice.replicas[others]


def _shared(choice: _Choice, brokers: int) -> Ints:
    return ints(np.bincount(_pairs(choice, brokers)[1], minlength=brokers * brokers))


def _candidates(choice: _Choice, passing: Ints, share: int) -> Bools:
    """Partitions that choose: of each pair some more than are to pass, and all without a leader."""
    brokers = math.isqrt(len(passing))
    others, pair = _pairs(choice, brokers)
    used = passing[pair] > 0
    others, pair = others[used], pair[used]
    order = np.argsort(pair, kind="stable")
    ordered = pair[order]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    chosen = choice.present < 0
    chosen[choice.of[others[order[rank < share * (passing[ordered] + 2)]]]] = True
    return chosen


def _solve(choice: _Choice, costs: BrokerCosts, choosing: Bools) -> tuple[Ints, Ints]:
    """Each partition's leader if only some choose; the price of leading on each broker."""
    stays = choice.offsets[:-1] + np.maximum(choice.present, 0)
    fixed = ints(np.bincount(choice.replicas[stays[~choosing]], minlength=len(costs.least)))
    left = BrokerCosts(costs.least - fixed, costs.most - fixed, costs.capacity - fixed)
    rows = np.flatnonzero(choosing)
    network = Network()
    broker = network.add_nodes(len(costs.least))
    sink = network.add_nodes(1)
    node = network.add_nodes(len(rows))
    _add_limits(network, broker, sink, left, len(rows))
    usable = np.flatnonzero(choice.allowed & choosing[choice.of])
    place = np.searchsorted(rows, choice.of[usable])
    arcs = network.add_arcs(node[place], broker[choice.replicas[usable]], 1, choice.change[usable])
    network.supply(node, 1)
    network.supply(sink, -len(rows))
    solution = network.solve()
    distances = solution.prices()
    chosen = usable[solution.flows[arcs] > 0]
    leader = np.maximum(choice.present, 0)
    leader[choice.of[chosen]] = chosen - choice.offsets[choice.of[chosen]]
    return leader, distances[sink] - distances[broker] - costs.soft


def _add_limits(network: Network, broker: Ints, sink: Ints, costs: BrokerCosts, total: int) -> None:
    for capacity, cost in costs.segments(total):
        network.add_arcs(broker, np.repeat(sink, len(broker)), capacity, cost)


def _cost(choice: _Choice, costs: BrokerCosts, leader: Ints) -> int:
    at = choice.offsets[:-1] + leader
    load = np.bincount(choice.replicas[at], minlength=len(costs.least))
    return int(choice.change[at].sum()) + costs.penalty(load)


def _bound(choice: _Choice, costs: BrokerCosts, prices: Ints) -> int:
    """No choice costs less: every partition takes its cheapest replica at these prices."""
    pays = np.where(choice.allowed, choice.change + prices[choice.replicas], 1 << 40)
    bound = int(np.minimum.reduceat(pays, choice.offsets[:-1]).sum())
    return bound + costs.least_with_prices(prices, choice.partitions)
