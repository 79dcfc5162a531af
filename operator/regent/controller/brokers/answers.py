"""What brokers answer to LeaderAndIsr, UpdateMetadata, StopReplica and DescribeLogDirs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import abandoned_shutdowns, refusal_repair, unassigned_replicas
from regent.controller.brokers.offline_replicas import on_replicas_become_offline
from regent.controller.brokers.refused_requests import take_answer
from regent.controller.effects import Enqueue, PublishView
from regent.controller.elections import leaders_of_former_topics
from regent.controller.events import BrokerChange
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import ReplicaState
from regent.controller.topics import stray_replicas, topic_ids
from regent.model.errors import StaleControllerEpochError
from regent.model.log import examples
from regent.model.partition import EPOCH_DURING_DELETE, NO_EPOCH, TopicPartition
from regent.protocol.control_requests import (
    ControlResponse,
    DescribeLogDirsResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from regent.protocol.error_codes import (
    KAFKA_STORAGE_ERROR,
    STALE_BROKER_EPOCH,
    error_name,
    is_stale_controller_epoch,
)


async def process_leader_and_isr_response(
    active: ActiveController, response: LeaderAndIsrResponse
) -> None:
    """A broker names the replicas that are on failed log directories, and those that it refuses.

    Raises:
        StaleControllerEpochError: The broker obeys a controller with a higher epoch.
    """
    context, broker_id = active.context, response.broker_id
    if await is_of_the_past(active, response):
        return
    response = _of_present_topics(context, response)
    await take_answer(active, response)
    if not await topic_ids.take_leader_and_isr_answer(active, response):
        await stray_replicas.take_leader_and_isr_answer(active, response)
        await leaders_of_former_topics.take_leader_and_isr_answer(active, response)
    await refusal_repair.take_leader_and_isr_answer(active, response)
    if response.error_code:
        return
    errors = response.partition_errors
    failed = [
        tp
        for tp, code in errors.items()
        if code == KAFKA_STORAGE_ERROR and broker_id in context.cluster.replicas(tp)
    ]
    before = context.replicas_on_offline_dirs(broker_id)
    if not failed and not before:
        return
    fresh = [tp for tp in failed if tp not in before]
    recovered = [tp for tp in response.partitions if tp in before and tp not in errors]
    if not fresh and not recovered:
        return
    context.change_replicas_on_offline_dirs(broker_id, failed=fresh, recovered=recovered)
    if fresh:
        active.log.warning("Replicas on a failed log dir", broker=broker_id, replicas=len(fresh))
        broker = context.cluster.brokers[broker_id]
        with context.trail.because(CauseKind.LOG_DIR_FAILED, brokers=[broker]):
            await on_replicas_become_offline(active, {broker_id: fresh})
    await PublishView(frozenset(tp.topic for tp in (*fresh, *recovered)))


def _of_present_topics(
    context: ControllerContext, response: LeaderAndIsrResponse
) -> LeaderAndIsrResponse:
    """An answer without topics that have another id by now: what a broker hosts under the former
    one says nothing, and it has been sent the present one since."""
    present = context.cluster.topic_ids
    former = {t for t, asked in response.topic_ids.items() if present.get(t, asked) != asked}
    if not former:
        return response
    return msgspec.structs.replace(
        response,
        partition_errors={
            tp: code for tp, code in response.partition_errors.items() if tp.topic not in former
        },
        partitions={tp: new for tp, new in response.partitions.items() if tp.topic not in former},
    )


async def process_update_metadata_response(
    active: ActiveController, response: UpdateMetadataResponse
) -> None:
    """A broker that refuses UpdateMetadata misleads its clients; it is named until it obeys.

    Raises:
        StaleControllerEpochError: The broker obeys a controller with a higher epoch.
    """
    if await is_of_the_past(active, response):
        return
    refused, broker_id = active.context.refusals.metadata, response.broker_id
    if response.error_code:
        error = error_name(response.error_code)
        if refused.get(broker_id) != error:
            active.log.error("UpdateMetadata refused", broker=broker_id, error=error)
        refused[broker_id] = error
    else:
        refused.pop(broker_id, None)
        await abandoned_shutdowns.take_answer(active, response)
    await refusal_repair.take_update_metadata_answer(active, response)


async def process_stop_replica_responses(
    active: ActiveController, responses: Sequence[StopReplicaResponse]
) -> None:
    """Replicas are deleted, or could not be (KAFKA-9946: only those that were to be).

    One on a failed log directory is offline: its topic does not wait for it.

    Raises:
        StaleControllerEpochError: A broker obeys a controller with a higher epoch.
    """
    deleted: dict[int, list[TopicPartition]] = {}
    failed: dict[int, list[TopicPartition]] = {}
    for response in responses:
        if await is_of_the_past(active, response):
            continue
        await take_answer(active, response)
        await stray_replicas.take_answer(active, response)
        started, errors = _deletions_started(active, response), response.partition_errors
        refused = [tp for tp in started if response.error_code or tp in errors]
        done = [tp for tp in started if not (response.error_code or tp in errors)]
        if refused:
            active.log.error(
                "Replicas not deleted",
                broker=response.broker_id,
                error_code=response.error_code,
                partitions=len(refused),
                examples=examples(f"{tp}: {errors.get(tp, 0)}" for tp in refused),
            )
            # A disk may be found to have failed by the deletion itself.
            active.context.change_replicas_on_offline_dirs(
                response.broker_id,
                failed=[tp for tp in refused if errors.get(tp) == KAFKA_STORAGE_ERROR],
                recovered=(),
            )
        failed.setdefault(response.broker_id, []).extend(refused)
        deleted.setdefault(response.broker_id, []).extend(done)
    if any(failed.values()):
        await active.deletions.fail_replicas(failed)
    if any(deleted.values()):
        await active.deletions.complete_replicas(deleted)
    answered = frozenset(tp.topic for tps in (*deleted.values(), *failed.values()) for tp in tps)
    waiting = frozenset(filter(active.context.is_topic_queued_for_deletion, answered))
    if waiting:
        await PublishView(waiting)


async def process_describe_log_dirs_response(
    active: ActiveController, response: DescribeLogDirsResponse
) -> None:
    """A broker that sees all of its disks has deleted what it says that it has deleted. One that
    was asked for its replicas may have some that it should not have."""
    if not await is_of_the_past(active, response):
        await stray_replicas.take_log_dirs(active, response)
        unassigned_replicas.take_log_dirs(active, response)


def _deletions_started(
    active: ActiveController, response: StopReplicaResponse
) -> list[TopicPartition]:
    """Of the partitions that a broker was asked to stop, those whose topic is being deleted.

    A replica that was moved away was to be deleted, too, under a leader epoch. It may have come
    back since, and the answer about the former replica says nothing about the present one.
    """
    states = active.context.replica_states_on(response.broker_id)
    return [
        tp
        for tp, asked in response.partitions.items()
        if asked.delete
        and asked.leader_epoch == EPOCH_DURING_DELETE
        and states.get(tp) is ReplicaState.DELETION_STARTED
    ]


async def is_of_the_past(active: ActiveController, response: ControlResponse) -> bool:
    """Whether an answer says nothing about the present, and what it says instead is done.

    An answer may have waited in the event queue while this process lost and won ``/controller``
    again, or while its broker was found to have bounced. What it was an answer to has been asked
    again since, and the new answer is the one to wait for.

    STALE_BROKER_EPOCH says that the broker has bounced, which its watch may not have reported yet.

    Raises:
        StaleControllerEpochError: The broker obeys a controller with a higher epoch: the sure sign
            that we are a zombie.
    """
    broker = active.context.cluster.brokers.get(response.broker_id)
    if response.controller_epoch not in (NO_EPOCH, active.context.term.epoch):
        return True
    if is_stale_controller_epoch(response):
        raise StaleControllerEpochError(f"broker {response.broker_id} obeys a newer controller")
    if broker is None or response.broker_epoch not in (NO_EPOCH, broker.epoch):
        return True
    if response.error_code == STALE_BROKER_EPOCH:
        await Enqueue(BrokerChange())
        return True
    return False
