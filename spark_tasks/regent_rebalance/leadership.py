"""Who leads: the fewest changes that bring leaders within limits, once replicas are placed.

Each partition sends one unit to one of its replicas, at no cost to its present leader and at cost 1
to another; brokers pay for being outside their limits.

Most partitions keep their leader. Those without one get one that has little to lead, and may change
it at no cost. So a small network comes first, with an arc for each pair of brokers, and one for
changes at no cost: leaders pass from one to the other in as many partitions as the two share. It
says how many are to pass, and its prices are a bound for all partitions. Enough partitions of each
such pair then choose for themselves, exactly. Where that costs more than the bound, all partitions
choose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.broker_costs import BrokerCosts
from regent_rebalance.flow import Network
from regent_rebalance.ragged import Bools, Ints, ints, owners, positions, rectangle

_SHARE = 8
"""Some partitions are in two pairs: so more choose than are to pass."""

_TURNS = 64
"""In how many parts the partitions without a leader get one."""


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
    brokers = len(costs.least)
    choice = _Choice.of_partitions(offsets, replicas, present, fixed, brokers)
    passing, prices = _solve_pairs(choice, costs)
    bound = _bound(choice, costs, prices)
    leader, prices = _solve(choice, costs, _candidates(choice, brokers, passing, share))
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
        given: Which of them leads unless another one is chosen. Where nobody leads it is one whose
            broker has little to lead.
        of: For each replica its partition.
        change: For each replica whether leading is a change. Where nobody leads, no choice is.
        allowed: For each replica whether it may lead.
    """

    offsets: Ints
    replicas: Ints
    given: Ints
    of: Ints
    change: Ints
    allowed: Bools

    @classmethod
    def of_partitions(
        cls, offsets: Ints, replicas: Ints, present: Ints, fixed: Bools, brokers: int
    ) -> _Choice:
        of = owners(offsets)
        unled = present[of] < 0
        change = ints((positions(offsets) != present[of]) & ~unled)
        allowed = ~fixed[of] | (change == 0)
        given = _given(offsets, replicas, present, brokers)
        return cls(offsets, replicas, given, of, change, allowed)

    @property
    def partitions(self) -> int:
        return len(self.given)

    def leading(self) -> Ints:
        """The broker that leads each partition unless another one is chosen."""
        return ints(self.replicas[self.offsets[:-1] + self.given])


def _given(offsets: Ints, replicas: Ints, present: Ints, brokers: int) -> Ints:
    """A leader for each partition: the present one, else one of a broker that leads the fewest.

    Partitions without a leader take turns, so that brokers get equally many.
    """
    given = present.copy()
    led = np.flatnonzero(present >= 0)
    leads = np.bincount(replicas[offsets[led] + present[led]], minlength=brokers)
    unled = np.flatnonzero(present < 0)
    for turn in range(min(_TURNS, len(unled))):
        members = unled[turn::_TURNS]
        present_at = rectangle(offsets, replicas, members, fill=-1)
        load = np.where(present_at < 0, np.iinfo(np.int64).max, leads[present_at])
        given[members] = np.argmin(load, axis=1)
        leads += np.bincount(replicas[offsets[members] + given[members]], minlength=brokers)
    return given


def _solve_pairs(choice: _Choice, costs: BrokerCosts) -> tuple[Ints, Ints]:
    """How many leaders pass in each pair, by the numbers of :func:`_pairs`; the price of leading.

    A partition may be counted for two pairs: so the flow is no plan, and costs no more than one.
    """
    brokers, network = len(costs.least), Network()
    broker = network.add_nodes(brokers)
    sink = network.add_nodes(1)
    _add_limits(network, broker, sink, costs, choice.partitions)
    shared = np.bincount(_pairs(choice, brokers)[1], minlength=2 * brokers * brokers)
    pairs = np.flatnonzero(shared)
    change, between = np.divmod(pairs, brokers * brokers)
    tails, heads = np.divmod(between, brokers)
    arcs = network.add_arcs(broker[tails], broker[heads], ints(shared)[pairs], change)
    network.supply(broker, ints(np.bincount(choice.leading(), minlength=brokers)))
    network.supply(sink, -choice.partitions)
    solution = network.solve()
    passing = np.zeros(len(shared), dtype=np.int64)
    passing[pairs] = solution.flows[arcs]
    distances = solution.prices()
    return passing, distances[sink] - distances[broker] - costs.soft


def _pairs(choice: _Choice, brokers: int) -> tuple[Ints, Ints]:
    """Replicas that might lead instead; for each the pair of the given leader and itself.

    Pairs are numbered by the leader, then the other broker; first those of changes at no cost.
    """
    is_given = np.zeros(len(choice.replicas), dtype=np.bool_)
    is_given[choice.offsets[:-1] + choice.given] = True
    others = np.flatnonzero(choice.allowed & ~is_given)
    leader = choice.leading()[choice.of[others]]
    return others, (choice.change[others] * brokers + leader) * brokers + choice.replicas[others]


def _candidates(choice: _Choice, brokers: int, passing: Ints, share: int) -> Bools:
    """Partitions that choose: of each pair some more than are to pass."""
    others, pair = _pairs(choice, brokers)
    used = passing[pair] > 0
    others, pair = others[used], pair[used]
    order = np.argsort(pair, kind="stable")
    ordered = pair[order]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    chosen = np.zeros(choice.partitions, dtype=np.bool_)
    chosen[choice.of[others[order[rank < share * (passing[ordered] + 2)]]]] = True
    return chosen


def _solve(choice: _Choice, costs: BrokerCosts, choosing: Bools) -> tuple[Ints, Ints]:
    """Each partition's leader if only some choose; the price of leading on each broker."""
    fixed = ints(np.bincount(choice.leading()[~choosing], minlength=len(costs.least)))
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
    leader = choice.given.copy()
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
