"""Where replicas go that leave their brokers.

Another broker takes the place of each, in the same position: so the preferred leaders stay spread.
Nothing else moves. Which broker, :func:`replace_replicas` decides as for replicas on brokers that
do not exist: one in a rack that the partition does not use otherwise, then the one with the fewest
preferred leaders and replicas of the topic, then the one with the fewest replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from regent.admin.replica_assignment import BrokerRack
from regent.controller.topics.replica_replacement import replace_replicas
from regent.model.partition import ReplicaAssignment
from regent.reconcile.drains.obstacles import Obstacle
from regent.reconcile.drains.request import DrainRequest, Hosted
from regent.reconcile.reassignments.move_plan import Move
from regent.resources.conditions import ConditionReason
from regent.resources.partition_reassignment import RackPolicy


@dataclass(frozen=True, slots=True)
class FoundMoves:
    """What can be moved, and what cannot."""

    moves: tuple[Move, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


def leaving_replicas(request: DrainRequest, covered: Collection[tuple[str, int]]) -> list[Hosted]:
    """Partitions with a replica on the brokers that is not on its way off them.

    Args:
        covered: Partitions that a plan moves already.
    """
    brokers = request.brokers
    return [
        hosted
        for hosted in request.hosted()
        if hosted.tp not in covered
        and any(
            replica in brokers and replica not in hosted.partition.removing_replicas
            for replica in hosted.partition.replicas
        )
    ]


def replica_moves(request: DrainRequest, partitions: Sequence[Hosted]) -> FoundMoves:
    """Moves of partitions, sorted by topic, off the brokers."""
    if not partitions:
        return FoundMoves()
    live = [BrokerRack(b, broker.rack) for b, broker in sorted(request.view.brokers.items())]
    hosts = [
        broker
        for broker in live
        if request.is_usable(broker.broker_id) and broker.broker_id not in request.view.cordoned
    ]
    full = [b for b in live if b not in hosts and b.broker_id not in request.brokers]
    loads = _loads(request)
    moves: list[Move] = []
    obstacles: list[Obstacle] = []
    for topic, group in groupby(partitions, key=lambda hosted: hosted.topic):
        replaced = replace_replicas(
            {p.partition: ReplicaAssignment(p.replicas) for p in topic.partitions},
            phantoms=request.brokers,
            brokers=hosts,
            loads=loads,
            full=full,
        )
        for hosted in group:
            before = hosted.partition.replicas
            after = replaced.get(hosted.partition.partition, ReplicaAssignment(())).replicas
            found = tuple(_obstacles(request, hosted, after))
            obstacles.extend(found)
            if not found:
                index = hosted.partition.partition
                moves.append(Move(topic.name, index, topic.czxid, before, after))
                loads.update(b for b in after if b not in before)
    return FoundMoves(tuple(moves), tuple(obstacles))


def _loads(request: DrainRequest) -> Counter[int]:
    loads: Counter[int] = Counter()
    for topic in request.view.topics.values():
        for partition in topic.partitions:
            loads.update(partition.replicas)
    return loads


def _obstacles(request: DrainRequest, hosted: Hosted, after: tuple[int, ...]) -> Iterator[Obstacle]:
    """What keeps a partition from getting these replicas. Those that only wait for something that
    ends by itself come alone."""
    waiting = waiting_obstacle(request, hosted)
    if waiting is not None:
        yield waiting
        return
    partition, brokers = hosted.partition, request.brokers
    if len(after) < len(partition.replicas):
        yield Obstacle(
            hosted=hosted,
            reason=ConditionReason.NOT_ENOUGH_BROKERS,
            message=f"its {len(partition.replicas)} replicas need as many brokers beside "
            f"{sorted(brokers)}, alive, reached by the controller and not cordoned; start more, or "
            "lower its replication factor",
            is_transient=True,
            holds_all=True,
        )
        return
    if request.resource.spec.racks is RackPolicy.KEEP:
        yield from _rack_obstacles(request, hosted, after)


def waiting_obstacle(request: DrainRequest, hosted: Hosted) -> Obstacle | None:
    """What ends by itself, or has to end first, before a partition can be moved."""
    topic, partition = hosted
    mover = request.moved_by_others.get(hosted.tp)
    if topic.is_being_deleted:
        reason = ConditionReason.TOPIC_MARKED_FOR_DELETION
        message = "its topic is being deleted; that is waited for"
    elif mover is not None:
        reason = ConditionReason.REASSIGNMENT_IN_PROGRESS
        message = f"PartitionReassignment {mover} moves it; it is moved when that is over"
    elif partition.is_being_reassigned:
        reason = ConditionReason.REASSIGNMENT_IN_PROGRESS
        message = "something else is moving it; it is moved when it has arrived"
    elif not partition.has_leader:
        reason = ConditionReason.PARTITIONS_LEADERLESS
        message = "it has no leader that a replica could be copied from; one is waited for"
    else:
        return None
    return Obstacle(hosted=hosted, reason=reason, message=message, is_transient=True)


def _rack_obstacles(
    request: DrainRequest, hosted: Hosted, after: tuple[int, ...]
) -> Iterator[Obstacle]:
    known = {broker_id: broker.rack for broker_id, broker in request.view.brokers.items()}
    if all(rack is None for rack in known.values()):
        return
    before = hosted.partition.replicas
    dead = [b for b in after if b not in known]
    if dead:
        yield Obstacle(
            hosted=hosted,
            reason=ConditionReason.BROKERS_UNAVAILABLE,
            message=f"brokers {dead} have replicas of it and are not alive, so their racks are not "
            "known; they are waited for. Set spec.racks to Ignore to go on without",
            is_transient=True,
            holds_all=True,
        )
        return
    racks_before, racks_after = _racks(before, known), _racks(after, known)
    if len(racks_after) < len(racks_before):
        yield Obstacle(
            hosted=hosted,
            reason=ConditionReason.RACKS_LOST,
            message=f"it would go from racks {sorted(racks_before)} to {sorted(racks_after)}: no "
            "broker is left in another rack; start one there, or set spec.racks to Ignore",
            holds_all=True,
        )


def _racks(replicas: Iterable[int], known: dict[int, str | None]) -> set[str]:
    """Racks of replicas; a broker without one counts as in a rack without a name."""
    return {known[b] or "" for b in replicas if b in known}
