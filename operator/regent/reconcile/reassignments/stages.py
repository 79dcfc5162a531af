"""Where a partition is on its way from the replicas that it had to those of the plan.

Nothing is remembered of the way: the replica lists in the cluster say it all. So whoever continues,
after a crash or as another process, continues at the same place.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from regent.controller.view import ClusterView, PartitionView, TopicView
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.unreadable_topics import problem_of
from regent.resources.conditions import ConditionReason


class MoveState(enum.StrEnum):
    """States of a move. The values are for people."""

    PENDING = "Pending"
    RUNNING = "Running"
    DONE = "Done"
    BLOCKED = "Blocked"
    """Something else is moving the partition."""
    DRIFTED = "Drifted"
    """The partition is neither where it was nor on the way of the plan."""


@dataclass(frozen=True, slots=True)
class MoveStatus:
    """How a move is doing, as a view shows it.

    Attributes:
        partition: The partition; None if it does not exist, or is another one of that name.
        stage: While pending: the replicas that it has, as far as the plan is concerned. While
            running: those that it has left.
        goal: While running: where it is going.
        problem: What is wrong with it, for people.
        reason: Why it does not go on, if that is known and it is on the way of the plan.
        waits_for_room: Whether something has to leave its brokers before it may begin.
    """

    move: Move
    state: MoveState
    partition: PartitionView | None = None
    stage: tuple[int, ...] = ()
    goal: tuple[int, ...] = ()
    problem: str = ""
    reason: ConditionReason | None = None
    waits_for_room: bool = False

    @property
    def still_adding(self) -> tuple[int, ...]:
        """While pending: brokers of the target that have no replica yet."""
        return tuple(b for b in self.move.target if b not in self.stage)

    def next_goal(self, *, one_by_one: bool) -> tuple[int, ...]:
        """Where a pending partition goes next."""
        if not one_by_one:
            return self.move.target
        path = stages(self.move.replicas, self.move.target)
        return path[min(_position(path, self.stage) + 1, len(path) - 1)]


def stages(replicas: tuple[int, ...], target: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Replica lists from one to the other, each with at most one broker that the one before it does
    not have.

    For each replica that comes one goes, the last first: so the leader stays as long as possible,
    and there are never fewer replicas than at one of both ends.
    """
    path = [replicas]
    going = [broker for broker in replicas if broker not in target]
    coming = [broker for broker in target if broker not in replicas]
    current = list(replicas)
    for broker in coming[:-1]:
        current.append(broker)
        if going:
            current.remove(going.pop())
        path.append(tuple(current))
    return (*path, target)


def statuses(plan: MovePlan, view: ClusterView) -> tuple[MoveStatus, ...]:
    """How all moves of a plan are doing, in their order."""
    return tuple(_status_in_view(move, view) for move in plan.moves)


def _status_in_view(move: Move, view: ClusterView) -> MoveStatus:
    """How a move is doing."""
    found = status_of(move, view.topics.get(move.topic))
    problem = problem_of(view, move.topic)
    if found.partition is None and problem is not None:
        return MoveStatus(
            move,
            MoveState.BLOCKED,
            problem=problem,
            reason=ConditionReason.TOPICS_UNREADABLE,
        )
    return found


def status_of(move: Move, topic: TopicView | None) -> MoveStatus:
    """The same for a topic that can be read; None: there is none."""
    if topic is None or topic.is_being_deleted:
        return MoveStatus(move, MoveState.DRIFTED, problem="the topic was deleted")
    if move.czxid and topic.czxid and move.czxid != topic.czxid:
        return MoveStatus(
            move, MoveState.DRIFTED, problem="the topic was deleted and created again"
        )
    partition = find_partition(topic, move.partition)
    if partition is None:
        return MoveStatus(move, MoveState.DRIFTED, problem="the partition does not exist")
    if partition.is_being_reassigned:
        return _moving(move, partition)
    if partition.replicas == move.target:
        return MoveStatus(move, MoveState.DONE, partition)
    if partition.replicas == move.replicas:
        return MoveStatus(move, MoveState.PENDING, partition, stage=move.replicas)
    path = stages(move.replicas, move.target)
    position = _position(path, partition.replicas)
    if position < 0:
        return MoveStatus(
            move,
            MoveState.DRIFTED,
            partition,
            problem=f"its replicas are {list(partition.replicas)}, neither {list(move.replicas)} "
            f"as planned nor {list(move.target)}",
        )
    return MoveStatus(move, MoveState.PENDING, partition, stage=path[position])


def _moving(move: Move, partition: PartitionView) -> MoveStatus:
    goal = partition.target_replicas
    origin = tuple(b for b in partition.replicas if b not in partition.adding_replicas)
    path = stages(move.replicas, move.target)
    if goal not in path[1:]:
        return MoveStatus(
            move,
            MoveState.BLOCKED,
            partition,
            problem=f"something else is moving it to {list(goal)}",
            reason=ConditionReason.REASSIGNMENT_IN_PROGRESS,
        )
    position = _position(path, origin)
    stage = origin if position < 0 else path[position]
    return MoveStatus(move, MoveState.RUNNING, partition, stage=stage, goal=goal)


def _position(path: tuple[tuple[int, ...], ...], replicas: tuple[int, ...]) -> int:
    """The stage with these replicas in whatever order, -1 if there is none. Somebody may have
    chosen another preferred leader: that is no other place."""
    wanted = frozenset(replicas)
    return next((i for i, stage in enumerate(path) if frozenset(stage) == wanted), -1)


def find_partition(topic: TopicView, index: int) -> PartitionView | None:
    """A partition of a topic by its index. A malformed topic node may leave gaps."""
    partitions = topic.partitions
    if 0 <= index < len(partitions) and partitions[index].partition == index:
        return partitions[index]
    return next((each for each in partitions if each.partition == index), None)
