"""Partitions as nodes of their own: exact for every case, and as large as the cluster.

A partition p emits as many units as it is to have replicas. For a rack k: p -> (p, k), as many as
the rack may have; (p, k) -> a broker of k that holds a replica of p, cost 0; and one new replica by
(p, k) -> hub of k, cost 1. Where a rack may have several, new ones go to each broker by an arc of
its own instead: a hub that has forgotten whose units it carries could give a partition one broker
twice. Racks without a replica and with room for one need no (p, k).

Where p is to stay spread over r racks, each gets one replica from p itself, and further ones by way
of a node that p gives as many as there are beyond r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.backbone import Backbone
from regent_rebalance.flow import Solution
from regent_rebalance.placement import Placement, deal, spread
from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Counts, Ints, ints, owners


@dataclass(frozen=True, slots=True)
class OwnNodes:
    """Where the nodes' arcs are, and what each means.

    Attributes:
        kept: Positions of present replicas, one for each arc of ``kept_arcs``.
        hub_partition, hub_rack: Partition and rack, one for each arc of ``hub_arcs``.
        new_partition, new_broker: Partition and broker, one for each arc of ``new_arcs``.
    """

    partitions: Ints
    kept: Ints
    kept_arcs: slice
    hub_partition: Ints
    hub_rack: Ints
    hub_arcs: slice
    new_partition: Ints
    new_broker: Ints
    new_arcs: slice


def add_own_nodes(backbone: Backbone, problem: Problem, partitions: Ints) -> OwnNodes:
    """Add nodes for some partitions, ascending."""
    network, racks = backbone.network, problem.racks
    kept_in_rack = problem.kept_in_rack()
    kept_counts = kept_in_rack[partitions]
    allowed = problem.allowed_in_rack(kept_in_rack)[partitions]
    node = network.add_nodes(len(partitions))
    network.supply(node, problem.factor[partitions])
    takers = np.bincount(problem.rack[problem.takes], minlength=racks)

    # (p, k), where the rack holds a replica or has room for several
    row, rack = np.nonzero((kept_counts > 0) | ((allowed > 1) & (takers > 0)))
    pair = network.add_nodes(len(row))
    most, least_racks = ints(allowed[row, rack]), problem.least_racks(kept_in_rack)[partitions]
    is_spread = least_racks > 0
    network.add_arcs(node[row], pair, np.where(is_spread[row], 1, most), 0)
    further = network.add_nodes(int(is_spread.sum()))
    beyond = problem.factor[partitions] - least_racks
    network.add_arcs(node[is_spread], further, beyond[is_spread], 0)
    several = np.flatnonzero(is_spread[row] & (most > 1))
    through = (np.cumsum(is_spread) - 1)[row[several]]
    network.add_arcs(further[through], pair[several], most[several] - 1, 0)
    pair_of = np.full(kept_counts.shape, -1, dtype=np.int64)
    pair_of[row, rack] = pair

    # present replicas
    place = np.full(problem.partitions, -1, dtype=np.int64)
    place[partitions] = np.arange(len(partitions))
    of = owners(problem.offsets)
    kept = np.flatnonzero((place[of] >= 0) & problem.keeps[problem.replicas])
    broker = problem.replicas[kept]
    kept_arcs = network.add_arcs(
        pair_of[place[of[kept]], problem.rack[broker]], backbone.broker[broker], 1, 0
    )

    # new replicas: through the hub where the rack may have one, else each to its broker
    hub_row, hub_rack = np.nonzero((allowed == 1) & (takers > 0))
    through = pair_of[hub_row, hub_rack]
    tails = np.where(through >= 0, through, node[hub_row])
    hub_arcs = network.add_arcs(tails, backbone.hub[hub_rack], 1, 1)
    new_row, new_broker = _direct(problem, partitions, allowed, place)
    new_arcs = network.add_arcs(
        pair_of[new_row, problem.rack[new_broker]], backbone.broker[new_broker], 1, 1
    )
    return OwnNodes(
        partitions,
        kept,
        kept_arcs,
        partitions[hub_row],
        hub_rack,
        hub_arcs,
        partitions[new_row],
        new_broker,
        new_arcs,
    )


def _direct(problem: Problem, partitions: Ints, allowed: Counts, place: Ints) -> tuple[Ints, Ints]:
    takers = np.flatnonzero(problem.takes)
    row, column = np.nonzero(allowed[:, problem.rack[takers]] > 1)
    broker = takers[column]
    of = owners(problem.offsets)
    mine = place[of] >= 0
    held = np.sort(place[of[mine]] * problem.brokers + problem.replicas[mine])
    keys = row * problem.brokers + broker
    found = np.searchsorted(held, keys)
    present = np.append(held, -1)[found] == keys
    return row[~present], broker[~present]


def arcs_of_full_network(problem: Problem) -> int:
    """About how many arcs it has."""
    takers = int(problem.takes.sum())
    several = problem.rack_limits() > 1
    return int(np.where(several, takers + problem.racks, 2 * problem.racks).sum())


def read_own_nodes(own: OwnNodes, solution: Solution) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """What a flow means for these partitions: positions of the present replicas that stay,
    partitions and racks of new ones through hubs, partitions and brokers of the others."""
    stays = own.kept[solution.flows[own.kept_arcs] > 0]
    through = solution.flows[own.hub_arcs] > 0
    direct = solution.flows[own.new_arcs] > 0
    return (
        stays,
        own.hub_partition[through],
        own.hub_rack[through],
        own.new_partition[direct],
        own.new_broker[direct],
    )


def serve_hubs(
    problem: Problem, arrivals: Ints, partition: Ints, rack: Ints, shuffle: Ints
) -> Ints | None:
    """A broker for each unit that went through a hub; None if no exchange finds distinct ones.

    Args:
        arrivals: How many units each broker gets.
        partition: The partition of each unit.
        rack: Its hub.
        shuffle: An order of partitions that has nothing to do with sizes.
    """
    brokers = np.empty(len(partition), dtype=np.int64)
    held = (owners(problem.offsets), problem.replicas)
    order = np.lexsort((shuffle[partition], rack))
    for k in np.unique(rack).tolist():
        units = order[rack[order] == k]
        members = np.flatnonzero(problem.rack == k)
        dealt = spread(members, arrivals[members])
        mine = problem.rack[held[1]] == k
        if not deal(partition[units], dealt, (held[0][mine], held[1][mine]), problem.brokers):
            return None
        brokers[units] = dealt
    return brokers


def solve_full_network(problem: Problem, shuffle: Ints) -> tuple[Placement, Ints]:
    """An optimal placement, and its dual prices."""
    backbone = Backbone.of(problem)
    own = add_own_nodes(backbone, problem, np.arange(problem.partitions))
    solution = backbone.network.solve()
    stays, partition, rack, new_partition, new_broker = read_own_nodes(own, solution)
    arrivals = backbone.arrivals(solution, problem.brokers)
    served = serve_hubs(problem, arrivals, partition, rack, shuffle)
    assert served is not None, "a hub of racks with one replica serves everybody"
    leaves = np.ones(len(problem.replicas), dtype=np.bool_)
    leaves[stays] = False
    partition = np.concatenate([partition, new_partition])
    broker = np.concatenate([served, new_broker])
    order = np.lexsort((broker, partition))
    return Placement(leaves, partition[order], broker[order]), backbone.prices(problem, solution)
