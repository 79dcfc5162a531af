"""Brokers come and go: BrokerChange, BrokerModifications, and replicas on failed log
directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.refused_requests import take_answer
from regent.controller.effects import (
    Enqueue,
    PublishView,
    ReadChildren,
    UpdateChannels,
    Write,
)
from regent.controller.events import BrokerChange
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.term import cluster_loading
from regent.controller.term.unusable_settings import refuse_id_of_a_registered_broker
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.znodes.permitted_reads import read_permitted
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError, StaleControllerEpochError
from regent.model.partition import NO_EPOCH, TopicPartition
from regent.protocol.control_requests import (
    ControlResponse,
    LeaderAndIsrResponse,
    UpdateMetadataResponse,
)
from regent.protocol.error_codes import (
    KAFKA_STORAGE_ERROR,
    STALE_BROKER_EPOCH,
    STALE_CONTROLLER_EPOCH,
    error_name,
)
from regent.zk_data import paths
from regent.zk_data.notifications import decode_log_dir_event
from regent.zk_data.operations import Delete


async def process_broker_change(active: ActiveController) -> None:
    """Compare the registrations with the context. A broker with another epoch has bounced, even if
    no child list ever missed it (KAFKA-7235)."""
    context = active.context
    known = context.live_or_shutting_down_brokers
    current = await cluster_loading.read_brokers(active.log, known=known)
    refuse_id_of_a_registered_broker(context.controller_id, current)
    cluster_loading.refuse_unsupported(current.values())
    new = [b for i, b in current.items() if i not in known]
    bounced = [b for i, b in current.items() if i in known and b.epoch > known[i].epoch]
    dead = [i for i in known if i not in current]
    if not (new or bounced or dead):
        return
    active.log.info(
        "Brokers changed",
        new=[b.broker_id for b in new],
        bounced=[b.broker_id for b in bounced],
        dead=dead,
        live=list(current),
    )
    bounced_ids = [b.broker_id for b in bounced]
    await UpdateChannels(context.epoch, opened=[*new, *bounced], closed=[*dead, *bounced_ids])
    if new:
        context.add_live_brokers(new)
        await on_broker_startup(active, new)
    if bounced:
        context.remove_live_brokers(bounced_ids)
        await on_broker_failure(active, bounced_ids)
        context.add_live_brokers(bounced)
        await on_broker_startup(active, bounced)
    if dead:
        context.remove_live_brokers(dead)
        await on_broker_failure(active, dead)
    await PublishView(frozenset())


async def on_broker_startup(active: ActiveController, brokers: Sequence[Broker]) -> None:
    """Send a returned broker everything, bring its replicas online, elect where it can help."""
    context = active.context
    started = [b.broker_id for b in brokers]
    for broker_id in started:
        context.set_replicas_on_offline_dirs(broker_id, ())
    existing = [b for b in context.live_or_shutting_down_brokers if b not in started]
    batch = ControllerBrokerRequestBatch(context)
    batch.add_update_metadata(broker_ids=existing)
    await batch.send()
    batch.add_update_metadata(context.leadership, broker_ids=started)
    await batch.send()
    replicas = {broker_id: list(context.replica_states_on(broker_id)) for broker_id in started}
    await active.replicas.handle_state_changes(
        {b: _not_queued(active, tps) for b, tps in replicas.items()}, ReplicaState.ONLINE
    )
    hosted = [tp for partitions in replicas.values() for tp in partitions]
    await active.partitions.trigger_online_for(hosted)
    await active.deletions.resume_for(dict.fromkeys(tp.topic for tp in hosted))


def _not_queued(
    active: ActiveController, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Leave out replicas whose deletion has begun: Online is not a legal state for them."""
    context = active.context
    return [tp for tp in partitions if tp.topic not in context.topics_with_deletion_started]


async def on_broker_failure(active: ActiveController, broker_ids: Sequence[int]) -> None:
    """Elect new leaders where the brokers led, shrink the ISRs they were in."""
    context = active.context
    for broker_id in broker_ids:
        context.set_replicas_on_offline_dirs(broker_id, ())
        context.clear_shutting_down(broker_id)
    await on_replicas_become_offline(
        active, {b: list(context.replica_states_on(b)) for b in broker_ids}
    )


async def on_replicas_become_offline(
    active: ActiveController, replicas: Mapping[int, Sequence[TopicPartition]]
) -> None:
    """Replicas are gone: with their broker or with a log directory.

    Leaderless partitions come first: ``handle_state_changes`` to Offline, then elections, then the
    ISRs that the dead were merely members of.
    """
    context = active.context
    leaderless: list[TopicPartition] = []
    being_deleted: dict[int, list[TopicPartition]] = {}
    others: dict[int, list[TopicPartition]] = {}
    for broker_id, partitions in replicas.items():
        for tp in partitions:
            queued = context.is_topic_queued_for_deletion(tp.topic)
            (being_deleted if queued else others).setdefault(broker_id, []).append(tp)
            state = context.leadership.get(tp)
            if not queued and state is not None and state.leader == broker_id:
                leaderless.append(tp)
    await active.partitions.handle_state_changes(leaderless, PartitionState.OFFLINE)
    await active.partitions.trigger_online_for(leaderless)
    await active.replicas.handle_state_changes(others, ReplicaState.OFFLINE)
    if being_deleted:
        await active.deletions.fail_replicas(
            {
                broker_id: [
                    tp
                    for tp in partitions
                    if context.replica_state(broker_id, tp) is ReplicaState.DELETION_STARTED
                ]
                for broker_id, partitions in being_deleted.items()
            }
        )
    if not leaderless:
        batch = ControllerBrokerRequestBatch(context)
        batch.add_update_metadata()
        await batch.send()


async def process_broker_modifications(active: ActiveController, broker_id: int) -> None:
    """A registration was rewritten: announce changed endpoints and features."""
    context = active.context
    (node,) = await read_permitted([paths.broker_id(broker_id)], watch=True)
    known = context.live_or_shutting_down_brokers.get(broker_id)
    if node is None:
        return  # the list of brokers has changed as well, and its watch reports it
    if known is None:
        await process_broker_change(active)  # its registration was malformed, and is corrected
        return
    broker = cluster_loading.decode_registration(broker_id, node, active.log, known=known)
    if broker is None or broker.epoch != known.epoch:
        return  # another life of it: the list of brokers has changed as well
    if broker == known:
        return
    active.log.info("Broker changed its registration", broker=broker_id)
    context.add_live_brokers([broker])
    batch = ControllerBrokerRequestBatch(context)
    batch.add_update_metadata()
    await batch.send()
    await PublishView(frozenset())


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
    await take_answer(active, response)
    if response.error_code:
        return
    errors = response.partition_errors
    failed = [
        tp
        for tp, code in errors.items()
        if code == KAFKA_STORAGE_ERROR and broker_id in context.replicas(tp)
    ]
    before = context.replicas_on_offline_dirs(broker_id)
    if not failed and not before:
        return
    fresh = [tp for tp in failed if tp not in before]
    recovered = [tp for tp in response.partitions if tp in before and tp not in errors]
    context.change_replicas_on_offline_dirs(broker_id, failed=fresh, recovered=recovered)
    if fresh:
        active.log.warning("Replicas on a failed log dir", broker=broker_id, replicas=len(fresh))
        await on_replicas_become_offline(active, {broker_id: fresh})
        await PublishView(frozenset(tp.topic for tp in fresh))


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
    if not response.error_code:
        refused.pop(broker_id, None)
        return
    error = error_name(response.error_code)
    if refused.get(broker_id) != error:
        active.log.error("UpdateMetadata refused", broker=broker_id, error=error)
    refused[broker_id] = error


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
    broker = active.context.live_or_shutting_down_brokers.get(response.broker_id)
    if response.controller_epoch not in (NO_EPOCH, active.context.epoch):
        return True
    if response.error_code == STALE_CONTROLLER_EPOCH:
        raise StaleControllerEpochError(f"broker {response.broker_id} obeys a newer controller")
    if broker is None or response.broker_epoch not in (NO_EPOCH, broker.epoch):
        return True
    if response.error_code == STALE_BROKER_EPOCH:
        await Enqueue(BrokerChange())
        return True
    return False


async def process_log_dir_event_notification(active: ActiveController) -> None:
    """Brokers lost log directories: ask them which replicas that concerns, by a LeaderAndIsr."""
    context = active.context
    parent = paths.LOG_DIR_EVENT_NOTIFICATION
    (children,) = await ReadChildren([parent], watch=True)
    nodes = [f"{parent}/{child}" for child in children or ()]
    affected: dict[int, None] = {}
    for path, node in zip(nodes, await read_permitted(nodes), strict=True):
        if node is None:
            continue
        try:
            affected[decode_log_dir_event(path, node.data)] = None
        except MalformedZNodeError as error:
            active.log.error("Malformed notification", path=error.path, reason=error.reason)
    replicas = {
        broker_id: _not_queued(active, context.replica_states_on(broker_id))
        for broker_id in affected
        if context.is_broker_online(broker_id)
    }
    await active.replicas.handle_state_changes(replicas, ReplicaState.ONLINE)
    await Write([Delete(path, missing_ok=True) for path in nodes], guard=epoch_guard(context))
