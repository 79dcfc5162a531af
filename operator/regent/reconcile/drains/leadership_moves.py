"""Which partitions get another preferred leader, and another leader, so that their brokers can be
stopped without harm.

The replicas stay where they are. Those on the brokers go to the end of the list: so elections
prefer the others, also those that Kafka's balance of leaders holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from regent.admin.commands import ElectionType, ElectLeaders
from regent.controller.topic_defaults import topic_defaults
from regent.controller.view import PartitionView
from regent.model.partition import TopicPartition
from regent.model.topic_config import MIN_INSYNC_REPLICAS, parse_int
from regent.reconcile.drains.obstacles import Obstacle
from regent.reconcile.drains.replica_moves import FoundMoves, waiting_obstacle
from regent.reconcile.drains.request import DrainRequest, Hosted
from regent.reconcile.reassignments.move_plan import Move
from regent.resources.conditions import ConditionReason


def leadership_moves(
    request: DrainRequest, covered: Collection[tuple[str, int]], origins: dict[TopicPartition, Move]
) -> FoundMoves:
    """Changes of the order of replicas, and everything that keeps the brokers from being stopped.

    Args:
        covered: Partitions whose order is being changed already.
        origins: Earlier moves: they know the order that a partition had at first.
    """
    moves: list[Move] = []
    obstacles: list[Obstacle] = []
    for hosted in request.hosted():
        topic, partition = hosted
        found = tuple(_obstacles(request, hosted))
        obstacles.extend(found)
        order = _order(request, partition)
        if found or hosted.tp in covered or not _needs_change(request, partition, order):
            continue
        origin = origins.get(hosted.tp)
        is_same = origin is not None and frozenset(origin.replicas) == frozenset(order)
        before = origin.replicas if origin is not None and is_same else partition.replicas
        moves.append(Move(topic.name, partition.partition, topic.czxid, before, order))
    return FoundMoves(tuple(moves), tuple(obstacles))


def election_off(request: DrainRequest) -> ElectLeaders | None:
    """The election of the preferred leaders that can take over from the brokers; None: there is
    none."""
    brokers = request.brokers
    return _election(
        hosted.tp
        for hosted in request.hosted()
        if hosted.partition.leader in brokers and _can_lead(request, hosted.partition)
    )


def election_back(
    request: DrainRequest, origins: Collection[Move], views: dict[TopicPartition, PartitionView]
) -> ElectLeaders | None:
    """The election of the leaders that partitions had, where they have their replicas again."""
    return _election(
        move.tp
        for move in origins
        if move.replicas[0] in request.brokers
        and (partition := views.get(move.tp)) is not None
        and partition.replicas == move.replicas
        and partition.leader != partition.replicas[0]
        and partition.replicas[0] in partition.isr
        and partition.replicas[0] in request.view.brokers
        and partition.replicas[0] not in request.view.unreached
    )


def _election(partitions: Iterator[TopicPartition]) -> ElectLeaders | None:
    chosen = tuple(partitions)
    return ElectLeaders(ElectionType.PREFERRED, chosen) if chosen else None


def _needs_change(request: DrainRequest, partition: PartitionView, order: tuple[int, ...]) -> bool:
    return _is_led(request, partition) and order[0] != partition.replicas[0]


def _is_led(request: DrainRequest, partition: PartitionView) -> bool:
    """Whether one of the brokers leads a partition, or is its preferred leader."""
    return partition.leader in request.brokers or partition.replicas[0] in request.brokers


def _can_lead(request: DrainRequest, partition: PartitionView) -> bool:
    """Whether the preferred leader can be elected."""
    return may_lead(request, partition, partition.replicas[0])


def may_lead(request: DrainRequest, partition: PartitionView, replica: int) -> bool:
    """Whether a replica can lead instead of the brokers.

    Not one whose broker the controller does not reach: it would not learn that it leads. And not
    one whose broker another drain has cordoned: the two would take the partition from each other
    without end. That one may stay the leader where it is.
    """
    if not (request.is_usable(replica) and replica in partition.isr):
        return False
    return replica not in request.view.cordoned or replica == partition.leader


def _order(request: DrainRequest, partition: PartitionView) -> tuple[int, ...]:
    """Replicas that can lead first, then others, then those on the brokers."""
    brokers = request.brokers

    def rank(replica: int) -> int:
        if replica in brokers:
            return 2
        return 0 if may_lead(request, partition, replica) else 1

    return tuple(sorted(partition.replicas, key=rank))


def _obstacles(request: DrainRequest, hosted: Hosted) -> Iterator[Obstacle]:
    waiting = waiting_obstacle(request, hosted)
    if waiting is not None:
        yield waiting
        return
    needed = _needed(request, hosted)
    if needed is None:
        yield Obstacle(
            hosted=hosted,
            reason=ConditionReason.BROKER_DEFAULTS_UNKNOWN,
            message=f"no broker has said yet what {MIN_INSYNC_REPLICAS} is; one is waited for",
            is_transient=True,
        )
        return
    partition = hosted.partition
    staying = [r for r in partition.replicas if r not in request.brokers]
    in_sync = [r for r in staying if r in partition.isr and r in request.view.brokers]
    if len(staying) < needed:
        yield Obstacle(
            hosted=hosted,
            reason=ConditionReason.BELOW_MIN_INSYNC_REPLICAS,
            message=f"without brokers {sorted(request.brokers)} it has {len(staying)} replicas and "
            f"needs {needed} ({MIN_INSYNC_REPLICAS}): it could not be written to; give its topic "
            "more replicas, or drain the brokers with the mode Replicas",
        )
    elif len(in_sync) < needed:
        yield Obstacle(
            hosted=hosted,
            reason=ConditionReason.UNDER_REPLICATED,
            message=f"of its replicas {staying} on other brokers {in_sync} are in sync, and "
            f"{needed} have to be ({MIN_INSYNC_REPLICAS}); the others are waited for",
            is_transient=True,
        )
    elif _is_led(request, partition) and not any(
        may_lead(request, partition, replica) for replica in in_sync
    ):
        yield Obstacle(
            hosted=hosted,
            reason=ConditionReason.BROKERS_CORDONED,
            message=f"of its replicas {staying} on other brokers {in_sync} are in sync, and all of "
            "these are drained by other BrokerDrains, are shutting down, or are not reached by the "
            "controller; that is waited for",
            is_transient=True,
        )


def _needed(request: DrainRequest, hosted: Hosted) -> int | None:
    """How many in-sync replicas it takes to write with acks=all, at least one; None: not known."""
    configured = request.configs.get(hosted.topic.name, {}).get(MIN_INSYNC_REPLICAS)
    value = parse_int(configured or "")
    if value is None:
        defaults = topic_defaults(request.view)
        value = None if defaults is None else defaults.min_insync_replicas
    return None if value is None else max(1, value)
