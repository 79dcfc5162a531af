"""What asks for reassignments, or lets them go on, from outside: znodes and failovers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from regent.controller.active_controller import ActiveController
from regent.controller.reassignment import reassignments, throttles
from regent.controller.reassignment.algebra import reassign_to, target_problem
from regent.controller.reassignment.request_node import drop_requests, read_request
from regent.controller.topics import assignment_repair
from regent.model.log import examples
from regent.model.partition import ReplicaAssignment, TopicPartition


async def process_zk_partition_reassignment(active: ActiveController) -> None:
    """``/admin/reassign_partitions`` was created, changed or deleted."""
    await _process_requests(active)


async def process_partition_reassignment_isr_change(
    active: ActiveController, partitions: Sequence[TopicPartition]
) -> None:
    """State znodes of partitions that are, or were, being reassigned have changed."""
    await reassignments.check_completion(active, partitions)


async def resume_reassignments(active: ActiveController) -> None:
    """Go on with what a predecessor has begun. The request node comes first: what it wants was
    wanted last."""
    await throttles.load(active)
    begun = await _process_requests(active)
    moving = active.context.cluster.partitions_being_reassigned
    await reassignments.advance(active, [tp for tp in moving if tp not in begun])
    await throttles.settle(active)


async def _process_requests(active: ActiveController) -> Collection[TopicPartition]:
    """Begin what the request node asks for. Returns the partitions that have got a new target.

    Unlike those of commands, targets may be brokers that are not live: the reassignment waits for
    them. What cannot be done is removed from the node.
    """
    request = await read_request(active)
    if request is None:
        return ()
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    refused: dict[TopicPartition, str] = {}
    for tp, target in request.targets.items():
        current = active.context.cluster.assignment(tp)
        problem = target_problem(target)
        if current is None or active.context.is_topic_queued_for_deletion(tp.topic):
            refused[tp] = "the partition does not exist, or its topic is being deleted"
        elif problem is not None:
            refused[tp] = problem
        elif any(assignment_repair.is_controller_id(active.context, b) for b in target):
            refused[tp] = "the controller hosts no replicas"
        elif not (current.is_being_reassigned and current.target_replicas == target):
            wanted[tp] = reassign_to(current, target)
    refused |= await reassignments.begin(active, wanted)
    if refused:
        active.log.warning(
            "Reassignments refused",
            partitions=len(refused),
            examples=examples(f"{tp}: {why}" for tp, why in refused.items()),
        )
    if refused or request.problems or not request.targets:
        await drop_requests(active, lambda tp, _: tp in refused)
    return {tp: None for tp in wanted if tp not in refused}.keys()
