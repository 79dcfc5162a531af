"""The way of partitions from one assignment to another, in sets.

A partition that is not there yet (phase A) waits, with its topic node saying so, until all target
replicas are in sync; then it is completed (phase B). The letters are those of upstream's
``onPartitionReassignment``, where each partition takes these steps by itself:

- U1, U2: the new assignment is stored, in ZooKeeper and in the context. U3: replicas that were
  being added for an older target are removed.
- A1: a new leader epoch makes the leader learn of its new replicas. A2: they are created.
- B1: they count as online. B2: the context has the target only. B3: a leader among the target
  replicas, a new leader epoch. B4: the others leave the ISR. B5: they are deleted. B6: the target
  is stored. B7: it leaves the request node. B8: all brokers know; here the requests of B3 and B4
  have said it. B9: a deletion of the topic goes on; here none has waited (see :func:`abandon`).

Everything that a successor needs is in the topic node: before B6 it repeats phase B, after it there
is at most an entry of the request node left, which asks for what is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain

from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.reassignment import throttles
from regent.controller.reassignment.algebra import completed, is_complete, replicas_lost
from regent.controller.reassignment.completion_election import COMPLETION
from regent.controller.reassignment.new_epochs import announce, raise_epochs
from regent.controller.reassignment.request_node import drop_requests
from regent.controller.reassignment.stored_assignments import store_assignments
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.term.cluster_loading import refresh_leadership
from regent.controller.topics.stray_replica_notes import remember
from regent.controller.transitions.replica_state_machine import by_broker
from regent.model.log import examples
from regent.model.partition import ReplicaAssignment, TopicPartition

STATES_WATCHED_BELOW = (2, 7)
"""inter.broker.protocol.version from which leaders ask the controller for ISR changes."""

Assignments = Mapping[TopicPartition, ReplicaAssignment]
Failures = dict[TopicPartition, str]
"""Partitions that keep the assignment that they have, with reasons."""


async def begin(active: ActiveController, wanted: Assignments) -> Failures:
    """Put known partitions on their way to new assignments, and complete what is there already.

    A partition that is on this very way stays on it. One that gets the replicas that it has,
    perhaps in another order, is done at once, with a new leader epoch.
    """
    context = active.context
    before = {tp: _assignment(context, tp) for tp in wanted}
    on_their_way = {
        tp: new for tp, new in wanted.items() if new == before[tp] and new.is_being_reassigned
    }
    changes = {tp: new for tp, new in wanted.items() if tp not in on_their_way}
    losing = {tp: lost for tp, new in changes.items() if (lost := replicas_lost(before[tp], new))}
    with context.trail.because(CauseKind.REASSIGNMENT):
        failures: Failures = await _remove_unneeded(active, changes, losing)  # U3
    changes = {tp: new for tp, new in changes.items() if tp not in failures}
    not_stored = await store_assignments(active, changes)  # U1
    for tp, new in changes.items():  # U2
        context.set_assignment(tp, before[tp] if tp in not_stored else new)
    stored = [tp for tp in changes if tp not in not_stored]
    settled = [tp for tp in stored if not changes[tp].is_being_reassigned]
    moving = [tp for tp in stored if changes[tp].is_being_reassigned]
    if moving:
        active.log.info("Reassignments begin", partitions=len(moving), examples=examples(moving))
    informed = [tp for tp in stored if tp in losing]
    # What has lost replicas and could not be stored goes on to its former target.
    moving += [tp for tp in not_stored if tp in losing]
    with context.trail.because(CauseKind.REASSIGNMENT):
        await announce(active, [tp for tp in settled if tp not in losing])
    await advance(active, moving, informed=informed)
    await complete_where_in_sync(active, on_their_way)
    await _finish(active, settled)
    return failures | not_stored


async def advance(
    active: ActiveController,
    partitions: Collection[TopicPartition],
    *,
    informed: Collection[TopicPartition] = (),
) -> None:
    """Take partitions that are being reassigned as far as they can be taken now.

    Args:
        informed: Partitions whose leaders know the assignment already.
    """
    if not partitions:
        return
    context = active.context
    _recognise_in_sync(context, partitions)
    ready = dict.fromkeys(_in_sync(context, partitions))
    waiting = [tp for tp in partitions if tp not in ready]
    await _start(active, waiting, informed=informed)
    # Watched from here on, so after the new epochs. The ISR may have grown already; and a partition
    # that never had a leader may have got its first on a new broker.
    await _read_isrs(active, waiting)
    await complete(active, [*ready, *_in_sync(context, waiting)])


async def check_completion(active: ActiveController, partitions: Iterable[TopicPartition]) -> None:
    """The ISRs of partitions may have changed: read them, and complete what is in sync."""
    moving = active.context.cluster.partitions_being_reassigned
    affected = [tp for tp in partitions if tp in moving]
    if affected:
        await _read_isrs(active, affected)
        in_sync = _in_sync(active.context, affected)
        await complete(active, [tp for tp in in_sync if not _is_halted(active.context, tp)])


def _is_halted(context: ControllerContext, tp: TopicPartition) -> bool:
    """Whether nothing has changed since an attempt that failed. What a watch has reported then is
    the leader epoch of that attempt: another one would raise it again, and so on without end."""
    return context.halted_reassignments.get(tp) == context.cluster.leadership[tp]


async def look_again(active: ActiveController) -> None:
    """Try to complete again what could not be completed: no watch reports that a right was given,
    or a quota raised."""
    halted = active.context.halted_reassignments
    partitions = list(halted)
    halted.clear()
    await check_completion(active, partitions)


async def complete_where_in_sync(
    active: ActiveController, partitions: Iterable[TopicPartition]
) -> None:
    """The ISRs of partitions have been read: complete what is in sync."""
    await complete(active, _in_sync(active.context, partitions))


async def resume_for_targets(
    active: ActiveController, started: Collection[int], hosted: Iterable[TopicPartition]
) -> None:
    """Brokers have started: go on where they are a target.

    Args:
        started: The brokers.
        hosted: Partitions with a replica on one of them.
    """
    cluster = active.context.cluster
    if cluster.partitions_being_reassigned:
        moving = [tp for tp in hosted if tp in cluster.partitions_being_reassigned]
        targets = {tp: _assignment(active.context, tp).target_replicas for tp in moving}
        await advance(active, [tp for tp in targets if any(b in targets[tp] for b in started)])


async def complete(active: ActiveController, partitions: Collection[TopicPartition]) -> None:
    """Phase B: the target replicas are in sync, the others go.

    A partition that finds no leader among its target replicas, or whose znodes cannot be changed,
    stays on its way: whatever lets it go on takes these steps again, and so does each watch check.
    """
    if not partitions:
        return
    context = active.context
    before = {tp: _assignment(context, tp) for tp in partitions}
    created = by_broker(
        context, partitions, lambda b, tp: context.replica_state(b, tp) is ReplicaState.NEW
    )
    await active.replicas.handle_state_changes(created, ReplicaState.ONLINE)  # B1
    for tp, assignment in before.items():  # B2
        context.set_assignment(tp, completed(assignment))
    with context.trail.because(CauseKind.REASSIGNMENT):
        failures: Failures = await active.partitions.handle_state_changes(  # B3
            partitions, PartitionState.ONLINE, COMPLETION
        )
        removed = {tp: a.removing_replicas for tp, a in before.items() if tp not in failures}
        failures |= await _delete_replicas(active, removed)  # B4, B5
    arrived = {tp: _assignment(context, tp) for tp in partitions if tp not in failures}
    failures |= await store_assignments(active, arrived)  # B6
    for tp in failures:
        context.set_assignment(tp, before[tp])
    done = [tp for tp in arrived if tp not in failures]
    if done:
        active.log.info("Reassignments completed", partitions=len(done), examples=examples(done))
    if failures:
        active.log.warning(
            "Reassignments not completed yet",
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )
        await _read_isrs(active, failures)  # a watch reports when there is more to know
    _note_halted(context, partitions, failures)
    await _finish(active, done)


def _note_halted(
    context: ControllerContext, partitions: Collection[TopicPartition], failures: Failures
) -> None:
    leadership = context.cluster.leadership
    for tp in partitions:
        if tp in failures and tp in leadership:
            context.halted_reassignments[tp] = leadership[tp]
        else:
            context.halted_reassignments.pop(tp, None)


async def abandon(active: ActiveController, topics: Iterable[str]) -> None:
    """Topics are to be deleted: what is on its way need not arrive.

    Upstream lets the deletion wait for the reassignment. That copies data only to delete it, and
    never ends where a target is down, or where a leader goes: no leader is elected for a topic that
    is to be deleted, and no reassignment of it can be cancelled (KAFKA-8249). The deletion covers
    all replicas, those that are being added and those that are being removed.
    """
    context = active.context
    moving = {
        tp: assignment
        for topic in topics
        for tp, assignment in context.cluster.partitions_of(topic).items()
        if assignment.is_being_reassigned
    }
    if not moving:
        return
    for tp, assignment in moving.items():
        context.set_assignment(tp, ReplicaAssignment(assignment.replicas))
    active.log.info(
        "Reassignments abandoned, their topics are to be deleted",
        partitions=len(moving),
        examples=examples(moving),
    )
    await drop_requests(active, lambda tp, _: tp in moving)
    await throttles.release(active, (tp.topic for tp in moving))


async def _finish(active: ActiveController, partitions: Collection[TopicPartition]) -> None:
    """Partitions are where they were to go."""
    if not partitions:
        return
    replicas = {tp: active.context.cluster.replicas(tp) for tp in partitions}
    await drop_requests(active, lambda tp, wanted: replicas.get(tp) == wanted)  # B7
    await throttles.release(active, (tp.topic for tp in partitions))
    await PublishView(frozenset(tp.topic for tp in partitions))


async def _start(
    active: ActiveController,
    partitions: Collection[TopicPartition],
    *,
    informed: Collection[TopicPartition],
) -> None:
    """Phase A: leaders learn of their new replicas, which are created."""
    context = active.context
    never_led = [tp for tp in partitions if context.partition_state(tp) is PartitionState.NEW]
    already_informed = dict.fromkeys(informed)
    with context.trail.because(CauseKind.REASSIGNMENT):
        await announce(active, [tp for tp in partitions if tp not in already_informed])  # A1
    adding = {tp: _assignment(context, tp).adding_replicas for tp in partitions}
    await active.replicas.handle_state_changes(  # A2
        _grouped(adding, lambda b, tp: context.replica_state(b, tp) is ReplicaState.NON_EXISTENT),
        ReplicaState.NEW,
    )
    if never_led:
        await active.partitions.trigger_online_for(never_led)
    if partitions:
        await PublishView(frozenset(tp.topic for tp in partitions))


def _recognise_in_sync(context: ControllerContext, partitions: Iterable[TopicPartition]) -> None:
    """Replicas that are added and in sync are there already, and lead perhaps: a controller whose
    state machines were broken, or somebody by hand, had left them out of the assignment."""
    leadership = context.cluster.leadership
    for tp in partitions:
        state = leadership.get(tp)
        in_sync = () if state is None else state.isr
        for broker_id in _assignment(context, tp).adding_replicas:
            is_unknown = context.replica_state(broker_id, tp) is ReplicaState.NON_EXISTENT
            if is_unknown and broker_id in in_sync:
                is_online = context.is_replica_online(broker_id, tp)
                known = ReplicaState.ONLINE if is_online else ReplicaState.OFFLINE
                context.set_replica_state(broker_id, tp, known)


async def _remove_unneeded(
    active: ActiveController,
    changes: Assignments,
    losing: Mapping[TopicPartition, tuple[int, ...]],
) -> Failures:
    """Take replicas out that were being added for an older target.

    Before the assignment is stored: until then a successor knows of them and goes on to the older
    target. The first step is the ISR, so that none of them is deleted that holds the only copy.
    """
    if not losing:
        return {}
    context = active.context
    before = {tp: _assignment(context, tp) for tp in losing}
    for tp in losing:
        context.set_assignment(tp, changes[tp])
    failures = await raise_epochs(active, losing)
    lost = {tp: replicas for tp, replicas in losing.items() if tp not in failures}
    failures |= await _delete_replicas(active, lost)
    for tp in failures:
        context.set_assignment(tp, before[tp])
    return failures


async def _delete_replicas(
    active: ActiveController, replicas: Mapping[TopicPartition, tuple[int, ...]]
) -> Failures:
    """Stop replicas and delete them.

    Nobody waits for the brokers' answers: what they are to delete is noted in ZooKeeper until they
    have. A broker that is down, or bounces, or a change of the controller leaves no files behind.

    Returns:
        Partitions of which a replica cannot be taken out of the ISR, or noted: none of theirs is
        deleted.
    """
    context = active.context
    existing = _grouped(
        replicas, lambda b, tp: context.replica_state(b, tp) is not ReplicaState.NON_EXISTENT
    )
    await active.replicas.handle_state_changes(existing, ReplicaState.OFFLINE)
    failures: Failures = {
        tp: f"replica {broker_id} cannot be taken out of the ISR"
        for broker_id, partitions in existing.items()
        for tp in partitions
        if context.replica_state(broker_id, tp) is not ReplicaState.OFFLINE
    }
    stopped = {b: [tp for tp in tps if tp not in failures] for b, tps in existing.items()}
    not_noted = await remember(context, stopped, active.log)
    if not_noted:
        for tp in dict.fromkeys(chain.from_iterable(stopped.values())):
            if tp.topic in not_noted:
                failures[tp] = "the replicas that leave cannot be noted"
        stopped = {b: [tp for tp in tps if tp not in failures] for b, tps in stopped.items()}
    for state in (
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.NON_EXISTENT,
    ):
        await active.replicas.handle_state_changes(stopped, state)
    return failures


def _grouped(
    replicas: Mapping[TopicPartition, tuple[int, ...]],
    condition: Callable[[int, TopicPartition], bool],
) -> dict[int, list[TopicPartition]]:
    """Replicas that meet a condition, by broker."""
    grouped: dict[int, list[TopicPartition]] = {}
    for tp, broker_ids in replicas.items():
        for broker_id in broker_ids:
            if condition(broker_id, tp):
                grouped.setdefault(broker_id, []).append(tp)
    return grouped


async def _read_isrs(active: ActiveController, partitions: Iterable[TopicPartition]) -> None:
    """Where leaders write ISRs to ZooKeeper, read them; watches report the next changes."""
    context = active.context
    if context.cluster.inter_broker_protocol < STATES_WATCHED_BELOW:
        with context.trail.because(CauseKind.ISR_CHANGE):
            await refresh_leadership(context, partitions, active.log, watch=True)


def _in_sync(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Partitions that are being reassigned and whose target replicas are all in sync."""
    leadership = context.cluster.leadership
    return [
        tp
        for tp in partitions
        if tp in context.cluster.partitions_being_reassigned
        and (current := leadership.get(tp)) is not None
        and is_complete(_assignment(context, tp), current.isr)
    ]


def _assignment(context: ControllerContext, tp: TopicPartition) -> ReplicaAssignment:
    assignment = context.cluster.assignment(tp)
    assert assignment is not None, f"{tp} has no assignment"
    return assignment
