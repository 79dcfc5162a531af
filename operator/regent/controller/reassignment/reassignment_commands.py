"""Reassignments by command: AlterPartitionReassignments, ListPartitionReassignments (KIP-455), and
those of custom resources."""

from __future__ import annotations

from collections.abc import Mapping

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    Outcome,
    PartitionResult,
    Reason,
    ReassignTopic,
    Rejected,
)
from regent.admin.topic_refusals import has_another_id, not_usable
from regent.controller.active_controller import ActiveController, topic_admin
from regent.controller.commands import ListPartitionReassignments
from regent.controller.reassignment import reassignments, throttles
from regent.controller.reassignment.algebra import cancelled, reassign_to, target_problem
from regent.controller.reassignment.new_epochs import Unsafe
from regent.controller.reassignment.request_node import drop_requests
from regent.model.partition import FoundPartition, ReplicaAssignment, TopicPartition
from regent.protocol.error_codes import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)

_DONE = PartitionResult()


async def alter_partition_reassignments(
    active: ActiveController, command: AlterPartitionReassignments
) -> Accepted:
    """Start, replace or cancel reassignments, each for itself."""
    results, wanted = decide_moves(active, command)
    if wanted:
        before = throttles.throttles_of(active, wanted)
        failures = await throttle_moves(active, command, wanted)
        allowed = {tp: new for tp, new in wanted.items() if tp not in failures}
        # What is asked for last counts.
        await drop_requests(active, lambda tp, _: tp in allowed)
        failures |= await reassignments.begin(active, allowed)
        await throttles.put_back(active, {tp: before[tp] for tp in failures})
        await throttles.release(active, (tp.topic for tp in failures))
        results |= {tp: _result_of(reason) for tp, reason in failures.items()}
    return Accepted(results)


def decide_moves(
    active: ActiveController, command: AlterPartitionReassignments
) -> tuple[dict[TopicPartition, PartitionResult], dict[TopicPartition, ReplicaAssignment]]:
    """The result of each partition, as far as it is known before anything is written, and the
    assignments of those that are to move."""
    results: dict[TopicPartition, PartitionResult] = {}
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for tp, target in command.targets.items():
        decided = _decide(active, tp, target, found=command.found.get(tp))
        if isinstance(decided, PartitionResult):
            results[tp] = decided
        else:
            results[tp] = _DONE
            wanted[tp] = decided
    return results, wanted


async def throttle_moves(
    active: ActiveController,
    command: AlterPartitionReassignments,
    wanted: Mapping[TopicPartition, ReplicaAssignment],
) -> dict[TopicPartition, str]:
    """Throttle partitions before they move. Returns those that must not move, with reasons."""
    if command.throttle is None:
        return {}
    failures = await throttles.throttle(active, wanted, command.throttle)
    return {tp: f"its throttle cannot be set: {reason}" for tp, reason in failures.items()}


async def reassign_topic(active: ActiveController, command: ReassignTopic) -> Outcome:
    """Start reassignments of partitions that are not being reassigned.

    Accepted if one of them could be started: the others show in the view as they were.
    """
    refused = refused_reassignment(active, command)
    if refused is not None:
        return refused
    cluster = active.context.cluster
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for partition, target in command.targets.items():
        tp = TopicPartition(command.topic, partition)
        current = cluster.assignment(tp)
        assert current is not None, f"{tp} has no assignment"
        wanted[tp] = reassign_to(current, target)
    await drop_requests(active, lambda tp, _: tp in wanted)
    failures = await reassignments.begin(active, wanted)
    if len(failures) < len(wanted):
        return Accepted()
    tp, why = next(iter(failures.items()))
    reason = Reason.BROKERS_UNAVAILABLE if isinstance(why, Unsafe) else Reason.CONCURRENT_CHANGE
    return Rejected(reason, f"partition {tp} keeps its replicas: {why}", "replication_factor")


def refused_reassignment(active: ActiveController, command: ReassignTopic) -> Rejected | None:
    """Why a topic cannot get other replicas now."""
    context, topic = active.context, command.topic
    admin = topic_admin(active)
    refused = not_usable(admin, topic) or has_another_id(admin, topic, command.topic_id)
    if refused is not None:
        return refused
    assignments = context.cluster.partitions_of(topic)
    live = context.live_broker_ids
    for partition, target in sorted(command.targets.items()):
        tp = TopicPartition(topic, partition)
        current = assignments.get(tp)
        if current is None:
            message = f"partition {tp} does not exist"
            return Rejected(Reason.CONCURRENT_CHANGE, message)
        if current.is_being_reassigned:
            message = f"partition {tp} is on its way to replicas {list(current.target_replicas)}"
            return Rejected(Reason.REASSIGNMENT_IN_PROGRESS, message)
        problem = target_problem(target)
        if problem is not None:
            message = f"partition {tp}: {problem}"
            return Rejected(Reason.INVALID_REPLICA_ASSIGNMENT, message, "replication_factor")
        dead = [b for b in target if b not in current.replicas and b not in live]
        if dead:
            message = (
                f"partition {tp} cannot get replicas on brokers {dead}, which are not live; live "
                f"are {list(live)}"
            )
            return Rejected(Reason.BROKERS_UNAVAILABLE, message, "replication_factor")
    return None


def list_partition_reassignments(
    active: ActiveController, command: ListPartitionReassignments
) -> Accepted:
    """Assignments of the partitions that are being reassigned."""
    cluster = active.context.cluster
    moving = cluster.partitions_being_reassigned
    asked = moving if command.partitions is None else command.partitions
    return Accepted({tp: cluster.assignment(tp) for tp in asked if tp in moving})


def _decide(
    active: ActiveController,
    tp: TopicPartition,
    target: tuple[int, ...] | None,
    *,
    found: FoundPartition | None,
) -> ReplicaAssignment | PartitionResult:
    """The assignment that follows from a request, or why it is refused."""
    context = active.context
    current = context.cluster.assignment(tp)
    if current is None or context.is_topic_queued_for_deletion(tp.topic):
        return PartitionResult(UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if found is not None and _is_another(active, tp, found):
        message = f"Topic {tp.topic} was deleted and created again at the same moment."
        return PartitionResult(UNKNOWN_TOPIC_OR_PARTITION, message)
    if target is None:
        if not current.is_being_reassigned:
            return PartitionResult(
                NO_REASSIGNMENT_IN_PROGRESS, f"Partition {tp} is not being reassigned."
            )
        return cancelled(current)
    problem = target_problem(target)
    if problem is not None:
        return PartitionResult(INVALID_REPLICA_ASSIGNMENT, f"Partition {tp}: {problem}.")
    wanted = reassign_to(current, target)
    if found is not None and current not in (found.assignment, wanted):
        message = f"The replicas of partition {tp} were changed at the same moment: {current}."
        return PartitionResult(INVALID_REPLICA_ASSIGNMENT, message)
    live = context.live_broker_ids
    dead = [broker_id for broker_id in wanted.adding_replicas if broker_id not in live]
    if dead:
        return PartitionResult(
            INVALID_REPLICA_ASSIGNMENT,
            f"Partition {tp} cannot get replicas on brokers {dead}, which are not live; live are "
            f"{list(live)}.",
        )
    return wanted


def _is_another(active: ActiveController, tp: TopicPartition, found: FoundPartition) -> bool:
    """Whether the topic of a partition is another one of the same name."""
    czxid = active.context.cluster.topic_czxids.get(tp.topic, 0)
    return bool(czxid and found.czxid) and czxid != found.czxid


def _result_of(reason: str) -> PartitionResult:
    code = INVALID_REPLICA_ASSIGNMENT if isinstance(reason, Unsafe) else UNKNOWN_SERVER_ERROR
    return PartitionResult(code, reason)
