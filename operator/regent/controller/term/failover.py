"""Becoming the controller: load everything, inform all brokers, correct what changed meanwhile.

The order is that of ``KafkaController.onControllerFailover`` and matters: notifications are
dropped before the state that they announce is read, brokers learn the list of live brokers before
any leader is named, replicas come before elections. Everything is read in bulk and sent in merged
batches.

One step comes earlier than in Kafka: the list of live brokers is sent as soon as it is known. Until
a broker knows the new controller epoch it obeys the former controller, and what is read next
may take seconds: topics, and the protocol versions of hosts that are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import (
    controlled_shutdown,
    missed_restarts,
    unassigned_replicas,
    unserved_listeners,
)
from regent.controller.configs.unclean_election_config import load_unclean_election_default
from regent.controller.effects import (
    CurrentTime,
    Enqueue,
    InterBrokerProtocol,
    PublishView,
    UpdateChannels,
)
from regent.controller.elections import leader_balance_count
from regent.controller.elections.auto_leader_balance import schedule_first_check
from regent.controller.elections.preferred_replica_election import process_replica_leader_election
from regent.controller.events import TopicDeletion
from regent.controller.partitions import overtaken_answers
from regent.controller.reassignment import departed_members
from regent.controller.reassignment.reassignment_changes import resume_reassignments
from regent.controller.reassignment.reassignments import abandon as abandon_reassignments
from regent.controller.state.context import ControllerContext
from regent.controller.term import cluster_loading, deposed_controllers, initial_state
from regent.controller.term.persistent_paths import create_persistent_paths
from regent.controller.term.unusable_settings import refuse_id_of_a_replica, refuse_other_protocol
from regent.controller.term.watch_check import schedule_watch_check
from regent.controller.tokens import delegation_token_expiry
from regent.controller.topics import (
    assignment_repair,
    deletion_markers,
    stray_replicas,
    topic_id_notes,
    topic_ids,
)
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.effects import ReadChildren, Write
from regent.zk_data.features import (
    VERSION_1,
    VERSION_2,
    FeatureStatus,
    FeatureZNode,
    decode_feature,
    encode_feature,
)
from regent.zk_data.operations import Create, Delete, SetData, ZNode
from regent.zk_data.permitted_reads import read_permitted

FEATURES_SINCE = (2, 7)
FEATURE_VERSION_2_SINCE = (3, 3)


async def on_controller_failover(
    active: ActiveController, *, known: Mapping[int, Broker] = MappingProxyType({})
) -> None:
    """Load the cluster and bring it into order. Ends when the last request is enqueued.

    Args:
        known: Brokers as this process knew them before: see ``cluster_loading.read_brokers``.
    """
    context, log = active.context, active.log
    context.trail.begin_term(await CurrentTime())
    await create_persistent_paths(active)
    brokers = await cluster_loading.read_brokers(log, known=known)
    cluster_loading.refuse_unsupported(brokers.values(), active.config)
    context.add_live_brokers(brokers.values())
    unserved_listeners.report(active)
    await UpdateChannels(
        context.term.epoch,
        opened=list(brokers.values()),
        epoch_zk_version=context.term.epoch_zk_version,
    )
    await _announce_brokers(active)
    await deposed_controllers.remember(active)
    await controlled_shutdown.resume(active)
    await _delete_notifications(active)
    loaded = await initial_state.load_topics(active)
    context.cluster.inter_broker_protocol = await InterBrokerProtocol()
    refuse_other_protocol(active.config, context.cluster.inter_broker_protocol)
    await _load_deletions(active)  # after brokers had the time to say whether they allow it
    await assignment_repair.repair_loaded(active)
    refuse_id_of_a_replica(context)
    await overtaken_answers.begin_term(active)
    await _set_up_features(active)
    await topic_ids.settle(active, _without_id(context))
    await load_unclean_election_default(context, active.config.unclean_leader_election_enable, log)
    await stray_replicas.delete_at_failover(active)
    await missed_restarts.treat_as_bounced(active, loaded.states.mzxids)
    source, unreadable = loaded.source, loaded.states.unreadable
    del loaded  # 80 bytes for each partition
    await active.replicas.startup()
    await active.partitions.startup_states(unreadable=unreadable)
    await active.partitions.trigger_online()
    await departed_members.take_out(active)
    await controlled_shutdown.release_all(active)
    await resume_reassignments(active)
    await active.deletions.resume()
    await process_replica_leader_election(active)
    await overtaken_answers.expect_overtaken_by_predecessors(active)
    await schedule_first_check(active)
    await leader_balance_count.schedule(active)
    await schedule_watch_check(active)
    await delegation_token_expiry.schedule_first_check(active)
    await unassigned_replicas.schedule_soon(active)
    await _announce_former_partitions(active)
    if topic_ids.are_in_use(context):
        await topic_id_notes.complete(context, log)
    log.info(
        "Controller failover completed",
        epoch=context.term.epoch,
        brokers=len(brokers),
        topics=len(context.cluster.topics),
        partitions=context.cluster.partition_count,
        offline=context.offline_partition_count,
        topics_from=source,
    )
    await PublishView(None)


async def _announce_brokers(active: ActiveController) -> None:
    """An UpdateMetadata without partitions: brokers obey no former controller from now on, and know
    who is alive before they learn of any leader."""
    batch = ControllerBrokerRequestBatch(active.context)
    batch.add_update_metadata()
    await batch.send()


async def _announce_former_partitions(active: ActiveController) -> None:
    """What we had deleted in former terms: brokers that were out of reach then may be back."""
    context = active.context
    batch = ControllerBrokerRequestBatch(context)
    batch.add_former_partitions(context.cluster.brokers, context.cluster.former_partitions)
    await batch.send()


async def process_inter_broker_protocol_change(
    active: ActiveController, version: tuple[int, int]
) -> None:
    """Brokers were upgraded, or had not reported their version at the failover.

    What depends on it is done now: a broker's controller would be restarted by the upgrade. Topics
    that get an id are announced: brokers take it over without a new leader epoch.
    """
    context = active.context
    refuse_other_protocol(active.config, version)
    active.log.info(
        "Inter-broker protocol changed", before=context.cluster.inter_broker_protocol, now=version
    )
    context.cluster.inter_broker_protocol = version
    await _set_up_features(active)
    topics = await topic_ids.settle(active, _without_id(context))
    if topics:
        await topic_ids.announce(active, topics)
        await PublishView(frozenset(topics))
    if topic_ids.are_in_use(context):
        await topic_id_notes.complete(context, active.log)


def _without_id(context: ControllerContext) -> list[str]:
    return [topic for topic in context.cluster.topics if topic not in context.cluster.topic_ids]


async def _delete_notifications(active: ActiveController) -> None:
    """Drop pending notifications: what they announce is about to be read in full.

    Leaves the watches on their parents, and remembers how far config changes were read.
    """
    context = active.context
    log_dirs, isr, deletions, configs = await ReadChildren(
        [
            paths.LOG_DIR_EVENT_NOTIFICATION,
            paths.ISR_CHANGE_NOTIFICATION,
            paths.DELETE_TOPICS,
            paths.CONFIG_CHANGES,
        ],
        watch=True,
    )
    del deletions  # read again once the topics are known; the watch is what counts here
    context.seen_config_changes = dict.fromkeys(configs or ())
    stale = [f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{child}" for child in log_dirs or ()]
    stale += [paths.isr_change_notification(child) for child in isr or ()]
    await Write([Delete(path, missing_ok=True) for path in stale], guard=epoch_guard(context))


async def _load_deletions(active: ActiveController) -> None:
    """Queue marked topics; those that cannot be deleted now wait."""
    context = active.context
    (children,) = await ReadChildren([paths.DELETE_TOPICS])
    marked = list(children or ())
    queued = await deletion_markers.deletable(active, marked, complete_deletions=True)
    if len(queued) < len(marked):
        # One may have been created and marked since the topics were read.
        await Enqueue(TopicDeletion())
    for topic in queued:
        context.queue_topic_for_deletion(topic)
    await abandon_reassignments(active, queued)
    if not active.config.deletion_waits_for_brokers:
        return
    with_dead_replica = [
        topic
        for topic in queued
        if any(
            not context.is_replica_online(broker_id, tp)
            for tp, assignment in context.cluster.partitions_of(topic).items()
            for broker_id in assignment.replicas
        )
    ]
    active.deletions.mark_ineligible(with_dead_replica, "a broker that hosts a replica is down")


async def _set_up_features(active: ActiveController) -> None:
    """``/feature`` says whether features are finalized at all (KIP-584): from 2.7 on they are.

    The protocol decides on the layout, too, as in ``KafkaController.enableFeatureVersioning``.
    """
    version = active.context.cluster.inter_broker_protocol
    enabled = version >= FEATURES_SINCE
    status = FeatureStatus.ENABLED if enabled else FeatureStatus.DISABLED
    layout = VERSION_2 if version >= FEATURE_VERSION_2_SINCE else VERSION_1
    (node,) = await read_permitted([paths.FEATURE])
    guard = epoch_guard(active.context)
    if node is None:
        content = encode_feature(FeatureZNode(layout, status))
        await Write([Create(paths.FEATURE, content, exist_ok=True)], guard=guard)
        return
    found = _decoded_feature(active, node)
    if found is None:
        return
    kept = found.features if found.status is status is FeatureStatus.ENABLED else {}
    wanted = FeatureZNode(layout, status, kept)
    if found != wanted:
        await Write([SetData(paths.FEATURE, encode_feature(wanted), node.version)], guard=guard)


def _decoded_feature(active: ActiveController, node: ZNode) -> FeatureZNode | None:
    """None if the node does not decode: it is the brokers' to read, so it is left alone."""
    try:
        return decode_feature(node.data)
    except MalformedZNodeError as error:
        active.log.error("Malformed feature node", path=error.path, reason=error.reason)
        return None
