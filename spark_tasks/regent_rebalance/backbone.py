"""The part that every replica network shares: brokers, a hub for each rack, and the sink.

A unit of flow is a replica. Units that reach a hub get any broker of its rack that takes replicas;
the hub forgets whose they are, harmlessly where a rack gets one replica of a partition only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.flow import Network, Solution
from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Ints, ints


@dataclass(frozen=True, slots=True)
class Backbone:
    """Where the shared part is.

    Attributes:
        broker: Node of each broker.
        hub: Node of each rack's hub.
        takers: Brokers that take replicas, one for each arc of ``hub_arcs``.
        hub_arcs: From hubs to brokers.
    """

    network: Network
    broker: Ints
    hub: Ints
    takers: Ints
    hub_arcs: slice

    @classmethod
    def of(cls, problem: Problem) -> Backbone:
        """A network of this part alone, whose sink takes all replicas."""
        network = Network()
        broker = network.add_nodes(problem.brokers)
        hub = network.add_nodes(problem.racks)
        sink = network.add_nodes(1)
        total = int(problem.factor.sum())
        keeping = np.flatnonzero(problem.keeps)
        for capacity, cost in problem.costs.segments(total):
            kept = keeping[capacity[keeping] > 0]
            network.add_arcs(broker[kept], np.repeat(sink, len(kept)), capacity[kept], cost)
        takers = np.flatnonzero(problem.takes)
        arcs = network.add_arcs(hub[problem.rack[takers]], broker[takers], total, 0)
        network.supply(sink, -total)
        return cls(network, broker, hub, takers, arcs)

    def arrivals(self, solution: Solution, brokers: int) -> Ints:
        """How many units each broker gets through its hub."""
        counts = np.zeros(brokers, dtype=np.int64)
        counts[self.takers] = solution.flows[self.hub_arcs]
        return counts

    def prices(self, problem: Problem, solution: Solution) -> Ints:
        """The price of a unit on each broker, without what the segments of its costs add."""
        distances = solution.prices()
        sink = self.hub[-1] + 1
        return ints(distances[sink] - distances[self.broker] - problem.costs.soft)
