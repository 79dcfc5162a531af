"""The network of classes: some ten thousand arcs for a million replicas, realised exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regent_rebalance.backbone import Backbone
from regent_rebalance.classes import Classes, classes_of
from regent_rebalance.flow import Solution
from regent_rebalance.full_network import OwnNodes, add_own_nodes, read_own_nodes, serve_hubs
from regent_rebalance.placement import Placement
from regent_rebalance.problem import Problem
from regent_rebalance.ragged import Bools, Ints, offsets_of, owners


@dataclass(frozen=True, slots=True)
class _GroupArcs:
    """An arc from a broker for each class of groups in which it is."""

    kind: Ints
    broker: Ints
    arcs: slice


@dataclass(frozen=True, slots=True)
class _RoomArcs:
    """Arcs from kinds of rooms to hubs, and from brokers to kinds of rooms."""

    kind: Ints
    rack: Ints
    hub_arcs: slice
    source: Ints
    source_kind: Ints
    source_arcs: slice


def solve_class_network(
    problem: Problem, own: Bools, optional: Ints, shuffle: Ints
) -> tuple[Placement | None, Ints]:
    """A placement, the best of those that classes allow, and dual prices.

    Args:
        own: Partitions with nodes of their own.
        optional: For each partition the replica that it may move.
        shuffle: An order of partitions that has nothing to do with sizes.

    Returns:
        No placement if a rack may have several replicas of a partition and no exchange of two
        units gives each distinct brokers.
    """
    classes = classes_of(problem, own, optional)
    backbone = Backbone.of(problem)
    plain_replicas = classes.plain[owners(problem.offsets)] & problem.keeps[problem.replicas]
    backbone.network.supply(
        backbone.broker,
        np.bincount(problem.replicas[plain_replicas], minlength=problem.brokers),
    )
    groups = _add_groups(backbone, problem, classes)
    rooms = _add_rooms(backbone, problem, classes)
    nodes = add_own_nodes(backbone, problem, np.flatnonzero(~classes.plain))
    solution = backbone.network.solve()
    placement = _realise(problem, classes, solution, backbone, groups, rooms, nodes, shuffle)
    return placement, backbone.prices(problem, solution)


def _add_groups(backbone: Backbone, problem: Problem, classes: Classes) -> _GroupArcs:
    groups, network = classes.groups, backbone.network
    kinds = int(groups.kind.max(initial=-1)) + 1
    members = np.bincount(groups.kind, minlength=kinds)
    leaving = np.zeros(kinds, dtype=np.int64)
    leaving[groups.kind] = groups.leaving
    node = network.add_nodes(kinds)
    network.supply(node, -members * leaving)
    keys = np.unique(groups.kind[groups.group] * problem.brokers + problem.replicas[groups.replica])
    kind, broker = np.divmod(keys, problem.brokers)
    arcs = network.add_arcs(backbone.broker[broker], node[kind], members[kind], 0)
    return _GroupArcs(kind, broker, arcs)


def _add_rooms(backbone: Backbone, problem: Problem, classes: Classes) -> _RoomArcs:
    network, kinds = backbone.network, len(classes.rooms)
    node = network.add_nodes(kinds)
    forced = np.flatnonzero(classes.arrivals > 0)
    units = np.zeros(kinds, dtype=np.int64)
    np.add.at(units, classes.room_kind[forced], classes.arrivals[forced])
    network.supply(node, units)
    members = np.bincount(classes.room_kind[classes.room_kind >= 0], minlength=kinds)
    kind, rack = np.nonzero(classes.rooms)
    hub_arcs = network.add_arcs(
        node[kind], backbone.hub[rack], members[kind] * classes.rooms[kind, rack], 1
    )
    moving = np.flatnonzero(classes.optional >= 0)
    source = problem.replicas[classes.optional[moving]]
    keys, counts = np.unique(source * max(1, kinds) + classes.room_kind[moving], return_counts=True)
    source, source_kind = np.divmod(keys, max(1, kinds))
    source_arcs = network.add_arcs(backbone.broker[source], node[source_kind], counts, 0)
    return _RoomArcs(kind, rack, hub_arcs, source, source_kind, source_arcs)


def _realise(
    problem: Problem,
    classes: Classes,
    solution: Solution,
    backbone: Backbone,
    groups: _GroupArcs,
    rooms: _RoomArcs,
    nodes: OwnNodes,
    shuffle: Ints,
) -> Placement | None:
    leaves = np.zeros(len(problem.replicas), dtype=np.bool_)
    leaves[classes.gone] = True
    leaves[_leaving(problem, classes, solution, groups, shuffle)] = True
    moved = _moved(problem, classes, solution, rooms)
    leaves[classes.optional[moved]] = True
    arrivals = classes.arrivals.copy()
    arrivals[moved] = 1
    partition, rack = _racks(classes, solution, rooms, arrivals, shuffle)
    stays, own_partition, own_rack, new_partition, new_broker = read_own_nodes(nodes, solution)
    leaves[~classes.plain[owners(problem.offsets)]] = True
    leaves[stays] = False
    partition = np.concatenate([partition, own_partition])
    rack = np.concatenate([rack, own_rack])
    taken = backbone.arrivals(solution, problem.brokers)
    served = serve_hubs(problem, taken, partition, rack, shuffle)
    if served is None:
        return None
    partition = np.concatenate([partition, new_partition])
    broker = np.concatenate([served, new_broker])
    order = np.lexsort((broker, partition))
    return Placement(leaves, partition[order], broker[order])


def _leaving(
    problem: Problem, classes: Classes, solution: Solution, arcs: _GroupArcs, shuffle: Ints
) -> Ints:
    """Which replicas of the groups leave: the groups of a class are dealt its flows in turn.

    A broker's flow is at most the number of groups, and stands in one piece: no group gets a
    broker twice.
    """
    groups = classes.groups
    if len(groups.kind) == 0:
        return np.zeros(0, dtype=np.int64)
    flows = solution.flows[arcs.arcs]
    brokers, kinds = np.repeat(arcs.broker, flows), np.repeat(arcs.kind, flows)
    first = np.flatnonzero(np.diff(groups.group, prepend=-1))
    partition = owners(problem.offsets)[groups.replica[first]]
    order = np.lexsort((shuffle[partition], groups.kind))
    members = np.bincount(groups.kind)
    begins = offsets_of(members)[:-1]
    units = offsets_of(np.bincount(kinds, minlength=len(members)))[:-1]
    position = np.arange(len(kinds)) - units[kinds]
    group = order[begins[kinds] + position % members[kinds]]
    wanted = group * problem.brokers + brokers
    keys = groups.group * problem.brokers + problem.replicas[groups.replica]
    return groups.replica[np.searchsorted(keys, wanted)]


def _moved(problem: Problem, classes: Classes, solution: Solution, rooms: _RoomArcs) -> Ints:
    """Which partitions move their optional replica: in each class those with the fewest bytes."""
    flows = solution.flows[rooms.source_arcs]
    moving = np.flatnonzero(classes.optional >= 0)
    kinds = max(1, len(classes.rooms))
    source = problem.replicas[classes.optional[moving]]
    keys = source * kinds + classes.room_kind[moving]
    order = np.lexsort((moving, problem.size[moving], keys))
    ascending = keys[order]
    arc = np.searchsorted(rooms.source * kinds + rooms.source_kind, ascending)
    first = np.searchsorted(ascending, ascending)
    return np.sort(moving[order[np.arange(len(order)) - first < flows[arc]]])


def _racks(
    classes: Classes, solution: Solution, rooms: _RoomArcs, arrivals: Ints, shuffle: Ints
) -> tuple[Ints, Ints]:
    """A rack for each new replica: the partitions of a kind are dealt its flows in turn."""
    flows = solution.flows[rooms.hub_arcs]
    kinds, racks = np.repeat(rooms.kind, flows), np.repeat(rooms.rack, flows)
    arriving = np.flatnonzero(arrivals > 0)
    order = arriving[np.lexsort((shuffle[arriving], classes.room_kind[arriving]))]
    members = np.bincount(classes.room_kind[arriving], minlength=len(classes.rooms))
    begins = offsets_of(members)[:-1]
    units = offsets_of(np.bincount(kinds, minlength=len(members)))[:-1]
    position = np.arange(len(kinds)) - units[kinds]
    return order[begins[kinds] + position % np.maximum(members[kinds], 1)], racks
