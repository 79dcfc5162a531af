"""Minimum-cost flow by OR-Tools, and the node prices that OR-Tools does not return."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from regent_rebalance.errors import SolverError
from regent_rebalance.ragged import Ints, ints


@dataclass(slots=True)
class Network:
    """A network that is being built. Nodes are numbers; arcs are added in groups.

    Attributes:
        nodes: How many nodes there are.
    """

    nodes: int = 0
    _tails: list[Ints] = field(default_factory=list)
    _heads: list[Ints] = field(default_factory=list)
    _capacities: list[Ints] = field(default_factory=list)
    _costs: list[Ints] = field(default_factory=list)
    _supplies: list[tuple[Ints, Ints]] = field(default_factory=list)
    _arcs: int = 0

    def add_nodes(self, count: int) -> Ints:
        """New nodes, numbered one after another."""
        self.nodes += count
        return np.arange(self.nodes - count, self.nodes)

    def add_arcs(
        self, tails: Ints, heads: Ints, capacities: Ints | int, costs: Ints | int
    ) -> slice:
        """New arcs; returns where their flows will be."""
        shape = np.shape(tails)
        self._tails.append(ints(tails))
        self._heads.append(ints(heads))
        self._capacities.append(ints(np.broadcast_to(capacities, shape)))
        self._costs.append(ints(np.broadcast_to(costs, shape)))
        self._arcs += len(tails)
        return slice(self._arcs - len(tails), self._arcs)

    def supply(self, nodes: Ints, units: Ints | int) -> None:
        """Nodes emit units (or take them, if negative), besides what they did before."""
        self._supplies.append((ints(nodes), ints(np.broadcast_to(units, np.shape(nodes)))))

    def solve(self) -> Solution:
        """The cheapest flow. Raises SolverError if there is none: callers build none such."""
        supplies = np.zeros(self.nodes, dtype=np.int64)
        for nodes, units in self._supplies:
            np.add.at(supplies, nodes, units)
        tails, heads = np.concatenate(self._tails), np.concatenate(self._heads)
        capacities, costs = np.concatenate(self._capacities), np.concatenate(self._costs)
        solver = SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(tails, heads, capacities, costs)
        solver.set_nodes_supplies(np.arange(self.nodes), supplies)
        status = solver.solve()
        if status != solver.OPTIMAL:
            raise SolverError(
                f"minimum-cost flow of {self.nodes} nodes and {self._arcs} arcs ended with status "
                f"{status} instead of {solver.OPTIMAL} (optimal): please report the snapshot"
            )
        return Solution(self.nodes, tails, heads, capacities, costs, ints(solver.flows(arcs)))


@dataclass(frozen=True, slots=True)
class Solution:
    """A cheapest flow.

    Attributes:
        flows: For each arc, in the order in which they were added.
    """

    nodes: int
    tails: Ints
    heads: Ints
    capacities: Ints
    costs: Ints
    flows: Ints

    def prices(self) -> Ints:
        """Dual prices: shortest distances in the residual network, by Bellman and Ford.

        No residual arc has a negative reduced cost with them. Raises SolverError if there are none,
        which means that the flow is not the cheapest.
        """
        forward, backward = self.flows < self.capacities, self.flows > 0
        tails = np.concatenate([self.tails[forward], self.heads[backward]])
        heads = np.concatenate([self.heads[forward], self.tails[backward]])
        costs = np.concatenate([self.costs[forward], -self.costs[backward]])
        return shortest_distances(self.nodes, tails, heads, costs)


def shortest_distances(nodes: int, tails: Ints, heads: Ints, costs: Ints) -> Ints:
    """Distances from a node that is 0 away from all. Raises SolverError on a negative cycle."""
    order = np.argsort(heads, kind="stable")
    tails, heads, costs = tails[order], heads[order], costs[order]
    begins = np.flatnonzero(np.diff(heads, prepend=-1))
    targets = heads[begins]
    distances = np.zeros(nodes, dtype=np.int64)
    if len(heads) == 0:
        return distances
    for _ in range(nodes + 1):
        reached = np.minimum.reduceat(distances[tails] + costs, begins)
        shorter = reached < distances[targets]
        if not shorter.any():
            return distances
        distances[targets[shorter]] = reached[shorter]
    raise SolverError("the flow has a negative cycle: please report the snapshot")
