"""Replicas that a broker is to delete, and has not confirmed yet.

Kafka's controller deletes a topic only when every broker with a replica of it is up: one dead
broker blocks it for as long as it is away. Here such replicas are noted in ZooKeeper, the topic
goes, and the broker deletes what is left of it when it is back, before it is sent any leadership.

Somebody may have created a topic of the same name meanwhile. What the broker has of that one must
stay, so a replica is deleted only where ZooKeeper says that this loses nothing
(``stray_replica_findings.py``).

A note goes when the broker has confirmed the deletion, or hosts the partition again, while all of
its log directories are online. While a broker is the controller nothing happens with it.
KAFKA-10548 describes the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import ReplicaState
from regent.controller.topics.stray_replica_findings import Finding, find
from regent.controller.topics.stray_replica_notes import (
    Note,
    Notes,
    brokers_with_notes,
    forget,
    read,
    write,
)
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.log import examples
from regent.model.partition import NO_EPOCH, TopicPartition
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
)
from regent.protocol.error_codes import INCONSISTENT_TOPIC_ID, error_name

_OF_ANOTHER_TOPIC: Final = error_name(INCONSISTENT_TOPIC_ID)


async def delete_on_started(active: ActiveController, broker_ids: Sequence[int]) -> None:
    """Have brokers that have just started delete what was left on them.

    To be called before they are sent a LeaderAndIsr. Replicas of topics whose deletion is in
    progress are sent none, so nobody learns that one is in an offline log directory, and the broker
    confirms its deletion. Those are noted before they are deleted.
    """
    context = active.context
    being_deleted = {
        broker_id: [
            tp
            for tp in context.replica_states_on(broker_id)
            if tp.topic in context.topics_with_deletion_started
        ]
        for broker_id in broker_ids
    }
    await write(context, being_deleted, active.log)
    await _delete(active, await read(broker_ids, active.log), have_just_started=True)


async def delete_at_failover(active: ActiveController) -> None:
    """Have all live brokers delete what was left on them, and has no successor there.

    To be called before partitions that nobody has led yet get their first leaders: all their live
    replicas will be in sync, and one with a former topic's records would bring them back.
    """
    noted = await brokers_with_notes(active.log)
    live = [b for b in active.context.cluster.brokers if str(b) in noted]
    if live:
        await _delete(active, await read(live, active.log), have_just_started=False)


async def take_answer(active: ActiveController, response: StopReplicaResponse) -> None:
    """A broker has deleted replicas, or does not see them, whatever it was asked for."""
    context, broker_id = active.context, response.broker_id
    asked = context.stray_replicas.get(broker_id, {})
    doubtful = context.doubtful_replicas.get(broker_id, {})
    if response.error_code or not (asked or doubtful):
        return
    topics: dict[str, None] = {}
    for tp, wanted in response.partitions.items():
        remaining = asked.get(tp.topic, {})
        is_noted = tp in remaining or tp in doubtful
        if not (is_noted and wanted.delete) or tp in response.partition_errors:
            continue
        if 0 <= wanted.leader_epoch < remaining.get(tp, NO_EPOCH):
            continue  # created again since that request, and to be deleted again
        topics[tp.topic] = None
        doubtful.pop(tp, None)  # whatever topic it was of, it is gone
        remaining.pop(tp, None)
        if not remaining:
            asked.pop(tp.topic, None)
    confirmed = [t for t in topics if t not in asked and not _is_doubtful(context, broker_id, t)]
    await _ask_for_log_dirs(active, broker_id, confirmed)


async def take_log_dirs(active: ActiveController, response: DescribeLogDirsResponse) -> None:
    """Drop the notes about what a broker has deleted, if it sees all of its log directories.

    A directory that is offline stays so until the broker starts again. So if all are online now,
    they were when the broker confirmed the deletions.
    """
    context, broker_id = active.context, response.broker_id
    asked = context.stray_replicas.get(broker_id, {})
    # A topic may have been noted again since.
    confirmed = [
        topic
        for topic in context.confirmed_strays.pop(broker_id, {})
        if topic not in asked and not _is_doubtful(context, broker_id, topic)
    ]
    if not confirmed:
        return
    offline = [path for path, code in response.log_dirs.items() if code]
    if response.error_code or offline:
        active.log.warning(
            "Notes about stray replicas kept: not all log directories are known to be online",
            broker=broker_id,
            error=error_name(response.error_code) if response.error_code else None,
            offline_log_dirs=offline,
            topics=len(confirmed),
            examples=examples(confirmed),
        )
        return
    active.log.info(
        "Stray replicas deleted",
        broker=broker_id,
        topics=len(confirmed),
        examples=examples(confirmed),
    )
    await forget(context, [(broker_id, topic) for topic in confirmed])


async def _ask_for_log_dirs(
    active: ActiveController, broker_id: int, topics: Sequence[str]
) -> None:
    """Before notes go. A broker that started with a failed directory confirms the deletion of
    replicas in it, which it does not see, and they would come back with the disk."""
    if not topics:
        return
    active.context.confirmed_strays.setdefault(broker_id, {}).update(dict.fromkeys(topics))
    batch = ControllerBrokerRequestBatch(active.context)
    batch.add_describe_log_dirs(broker_id)
    await batch.send()


async def take_leader_and_isr_answer(
    active: ActiveController, response: LeaderAndIsrResponse
) -> None:
    """What a broker hosts is of the former topic if it says so, else of the present one."""
    context, broker_id = active.context, response.broker_id
    doubtful = context.doubtful_replicas.get(broker_id)
    if not doubtful or response.error_code:
        return
    answered = [tp for tp in doubtful if tp in response.partitions]
    errors = response.partition_errors
    strays = [
        tp
        for tp in answered
        if errors.get(tp) == INCONSISTENT_TOPIC_ID and _may_go(context, broker_id, tp)
    ]
    settled = [tp for tp in answered if tp in strays or tp not in errors]
    for tp in settled:
        del doubtful[tp]
    await _delete_and_create(active, broker_id, strays)
    asked = context.stray_replicas.get(broker_id, {})
    done = [
        topic
        for topic in dict.fromkeys(tp.topic for tp in settled)
        if topic not in asked and not _is_doubtful(context, broker_id, topic)
    ]
    await _ask_for_log_dirs(active, broker_id, done)


async def take_isr_changes(active: ActiveController, partitions: Iterable[TopicPartition]) -> None:
    """Brokers that have refused to host a partition, as they have a replica of the former topic,
    may have left its ISR: then that replica may go."""
    context = active.context
    for broker_id, doubtful in list(context.doubtful_replicas.items()):
        refused = context.refusals.on_broker(broker_id)
        strays = [
            tp
            for tp in partitions
            if tp in doubtful
            and refused.get(tp) == _OF_ANOTHER_TOPIC
            and _may_go(context, broker_id, tp)
        ]
        for tp in strays:
            del doubtful[tp]
        await _delete_and_create(active, broker_id, strays)


def _may_go(context: ControllerContext, broker_id: int, tp: TopicPartition) -> bool:
    """Whether a broker that has a replica of the former topic may start empty.

    An in-sync broker that starts empty may lead, and others then truncate to what it has. So it
    may only where nobody else can have committed records: no leader has ever changed the ISR, or
    there is no other replica.

    A controller raises the leader epoch with each write, a leader that changes the ISR does not. A
    broker that does not host the partition is in such an ISR since the first state, so nothing was
    committed without it, or because of an unclean election.
    """
    cluster = context.cluster
    state = cluster.leadership[tp]
    return (
        broker_id not in state.isr
        or state.partition_epoch in (0, state.leader_epoch)
        or cluster.replicas(tp) == (broker_id,)
    )


async def _delete_and_create(
    active: ActiveController, broker_id: int, partitions: Sequence[TopicPartition]
) -> None:
    """Delete replicas of a former topic, and create those of the present one in their place."""
    if not partitions:
        return
    active.log.warning(
        "Replicas of a former topic found", broker=broker_id, examples=examples(partitions)
    )
    asked = active.context.stray_replicas.setdefault(broker_id, {})
    for tp in partitions:
        asked.setdefault(tp.topic, {})[tp] = NO_EPOCH
    batch = ControllerBrokerRequestBatch(active.context)
    batch.add_stray_deletion(broker_id, partitions)
    await batch.send()
    # A replica that is in sync may lie in a log directory that is offline: then it is not created.
    leadership = active.context.cluster.leadership
    in_sync = [tp for tp in partitions if broker_id in leadership[tp].isr]
    others = [tp for tp in partitions if broker_id not in leadership[tp].isr]
    batch.add_leader_and_isr((broker_id,), in_sync, is_new=False)
    batch.add_leader_and_isr((broker_id,), others, is_new=True)
    await batch.send()


def _is_doubtful(context: ControllerContext, broker_id: int, topic: str) -> bool:
    return any(tp.topic == topic for tp in context.doubtful_replicas.get(broker_id, ()))


async def _delete(active: ActiveController, notes: Notes, *, have_just_started: bool) -> None:
    """Ask brokers to delete their stray replicas.

    The deletion of a topic of the same name asks for what it has yet to delete, and the broker's
    confirmation of that counts here, too.
    """
    if not notes:
        return
    context = active.context
    findings = await find(context, notes, active.log, have_just_started=have_just_started)
    batch = ControllerBrokerRequestBatch(context)
    doubtful: list[Note] = []
    for note, partitions in notes.items():
        broker_id, topic = note
        batch.add_former_partitions((broker_id,), partitions)
        found = {tp: findings[broker_id, tp] for tp in partitions}
        if Finding.DOUBTFUL in found.values():
            doubtful.append(note)
        hosted = dict.fromkeys(tp for tp in found if found[tp] is Finding.HOSTED_SINCE_WHEN)
        if hosted:
            context.doubtful_replicas.setdefault(broker_id, {}).update(hosted)
        # What is doubtful is not confirmed, so the note stays until the next start of the broker.
        others = dict.fromkeys(tp for tp in found if tp not in hosted)
        if not others:
            continue
        asked = context.stray_replicas.setdefault(broker_id, {}).setdefault(topic, {})
        fresh = [tp for tp in others if tp not in asked]  # the others: in this very term
        asked.update(dict.fromkeys(others, NO_EPOCH))
        stopped = [
            tp
            for tp in fresh
            if found[tp] is Finding.STRAY and not _is_still_to_be_deleted(context, broker_id, tp)
        ]
        batch.add_stray_deletion(broker_id, stopped)
    await batch.send()
    if doubtful:
        active.log.warning(
            "Stray replicas left until the next start of their broker: they may be the only ones",
            examples=_names(doubtful),
            count=len(doubtful),
        )


def _is_still_to_be_deleted(context: ControllerContext, broker_id: int, tp: TopicPartition) -> bool:
    """Whether the deletion of its topic will ask the broker to delete a replica.

    It asks once. A broker that confirmed that and has restarted since may see a log directory now
    that it did not see then.
    """
    return (
        context.is_topic_queued_for_deletion(tp.topic)
        and broker_id in context.cluster.replicas(tp)
        and context.replica_state(broker_id, tp) is not ReplicaState.DELETION_SUCCESSFUL
    )


def _names(notes: Iterable[Note]) -> list[str]:
    return examples(f"{topic} on broker {broker_id}" for broker_id, topic in notes)
