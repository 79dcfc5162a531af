"""Reassignments by command: AlterPartitionReassignments, ListPartitionReassignments (KIP-455)."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.commands import (
    Accepted,
    AlterPartitionReassignments,
    ListPartitionReassignments,
    PartitionResult,
)
from regent.controller.reassignment import reassignments
from regent.controller.reassignment.algebra import cancelled, reassign_to, target_problem
from regent.controller.reassignment.new_epochs import Unsafe
from regent.controller.reassignment.request_node import drop_requests
from regent.model.partition import ReplicaAssignment, TopicPartition
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
    results: dict[TopicPartition, PartitionResult] = {}
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for tp, target in command.targets.items():
        decided = _decide(active, tp, target)
        if isinstance(decided, PartitionResult):
            results[tp] = decided
        else:
            results[tp] = _DONE
            wanted[tp] = decided
    if wanted:
        # What is asked for last counts.
        await drop_requests(active, lambda tp, _: tp in wanted)
        failures = await reassignments.begin(active, wanted)
        results |= {tp: _result_of(reason) for tp, reason in failures.items()}
    return Accepted(results)


def list_partition_reassignments(
    active: ActiveController, command: ListPartitionReassignments
) -> Accepted:
    """Assignments of the partitions that are being reassigned."""
    cluster = active.context.cluster
    moving = cluster.partitions_being_reassigned
    asked = moving if command.partitions is None else command.partitions
    return Accepted({tp: cluster.assignment(tp) for tp in asked if tp in moving})


def _decide(
    active: ActiveController, tp: TopicPartition, target: tuple[int, ...] | None
) -> ReplicaAssignment | PartitionResult:
    """The assignment that follows from a request, or why it is refused."""
    context = active.context
    current = context.cluster.assignment(tp)
    if current is None or context.is_topic_queued_for_deletion(tp.topic):
        return PartitionResult(UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
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
    live = context.live_broker_ids
    dead = [broker_id for broker_id in wanted.adding_replicas if broker_id not in live]
    if dead:
        return PartitionResult(
            INVALID_REPLICA_ASSIGNMENT,
            f"Partition {tp} cannot get replicas on brokers {dead}, which are not live; live are "
            f"{list(live)}.",
        )
    return wanted


def _result_of(reason: str) -> PartitionResult:
    code = INVALID_REPLICA_ASSIGNMENT if isinstance(reason, Unsafe) else UNKNOWN_SERVER_ERROR
    return PartitionResult(code, reason)
