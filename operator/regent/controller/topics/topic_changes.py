"""Topics come, grow and go: TopicChange, PartitionModifications, TopicNodesDeleted and
TopicDeletion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import filterfalse

import msgspec

from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.reassignment import dropped_reassignments
from regent.controller.reassignment.reassignments import abandon as abandon_reassignments
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.term import cluster_loading
from regent.controller.topics import (
    assignment_repair,
    deletion_markers,
    topic_id_notes,
    topic_ids,
)
from regent.controller.transitions import election
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.transitions.replica_state_machine import by_broker
from regent.model.errors import MalformedZNodeError
from regent.model.log import examples
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import ReadChildren, ReadData, Write
from regent.zk_data.operations import SetData
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic


async def process_topic_change(active: ActiveController) -> None:
    """Compare the list of topics with the context: create what is new, forget what is gone."""
    context = active.context
    (children,) = await ReadChildren([paths.BROKER_TOPICS], watch=True)
    listed = children or ()
    # ZooKeeper gives all names: nothing else in here takes the longer the more topics there are.
    new = list(filterfalse(context.cluster.topics.__contains__, listed))
    gone: list[str] = []
    if len(listed) - len(new) < len(context.cluster.topics):
        gone = sorted(context.cluster.topics - frozenset(listed))
    await _forget_vanished(active, gone)
    vanished = _unreadable_that_vanished(context, listed)
    context.cluster.note_unreadable(dict.fromkeys(vanished))
    added: list[TopicPartition] = []
    if new:
        read = await cluster_loading.read_topics(
            new, active.log, known=context.cluster.unreadable_topics
        )
        topics, problems = cluster_loading.without_shared_ids(context.cluster, read, active.log)
        added = cluster_loading.add_topics(context, topics)
        context.cluster.note_unreadable(problems)
        await assignment_repair.repair(active, added)
        await topic_ids.settle(active, _without_id(context, topics))
        if topics:  # those that cannot be read are new each time
            active.log.info("New topics", topics=len(topics), partitions=len(added))
        with context.trail.because(CauseKind.TOPIC_CREATED):
            await on_new_partition_creation(active, added)
        await topic_id_notes.remember(context, topics, active.log)
    if gone or new or vanished:
        await PublishView(frozenset(gone).union(new, vanished))


def _unreadable_that_vanished(context: ControllerContext, listed: Sequence[str]) -> list[str]:
    unreadable = context.cluster.unreadable_topics
    return sorted(unreadable.keys() - frozenset(listed)) if unreadable else []


async def _forget_vanished(active: ActiveController, gone: Sequence[str]) -> None:
    await _forget(active.context, gone)
    if gone:
        active.log.info(
            "Topics have vanished from ZooKeeper", topics=len(gone), examples=examples(gone)
        )


async def _forget(context: ControllerContext, gone: Iterable[str]) -> None:
    """The nodes of topics were deleted by somebody else, whatever has become of the replicas."""
    gone = list(gone)
    notes = topic_id_notes.incarnations(context, gone)
    with context.trail.because(CauseKind.TOPIC_VANISHED):
        for topic in gone:
            _keep_states(context, topic)
            context.remove_topic(topic)
    await topic_id_notes.forget(context, notes)


def _keep_states(context: ControllerContext, topic: str) -> None:
    """Brokers have the replicas, and what they know of them counts for a topic of that name. Who
    was in sync does not where it was to be deleted: that was whose replica was stopped last."""
    cluster = context.cluster
    known = cluster.leadership
    states = {tp: known[tp] for tp in cluster.partitions_of(topic) if tp in known}
    if context.is_topic_queued_for_deletion(topic):
        states = {tp: msgspec.structs.replace(state, isr=()) for tp, state in states.items()}
    cluster.vanished_partitions.note(states)


async def on_new_partition_creation(
    active: ActiveController, partitions: Sequence[TopicPartition]
) -> None:
    """Bring new partitions into being: their first leader is the first live replica."""
    if not partitions:
        return
    await active.partitions.handle_state_changes(partitions, PartitionState.NEW)
    replicas = by_broker(active.context, partitions)
    await active.replicas.handle_state_changes(replicas, ReplicaState.NEW)
    await active.partitions.handle_state_changes(
        partitions, PartitionState.ONLINE, election.OFFLINE
    )
    await active.replicas.handle_state_changes(replicas, ReplicaState.ONLINE)


async def process_topic_nodes_deleted(active: ActiveController, names: Sequence[str]) -> None:
    """Topic nodes were deleted, mostly by ourselves. If not, the list of topics may not show it:
    there may be another node of that name when it is read."""
    known = [topic for topic in names if active.context.cluster.has_topic(topic)]
    if known:
        await process_partition_modifications(active, known)


async def process_partition_modifications(active: ActiveController, names: Sequence[str]) -> None:
    """Topic nodes changed: create partitions that are new. A node that was deleted and created
    again is another topic. A topic without a node is gone: nothing watches for the next one, and
    the list of topics shows names only.

    Other changes are not ours to follow: replicas of existing partitions change by reassignment
    only, and ids not at all.
    """
    context = active.context
    read = await cluster_loading.read_topics(
        names, active.log, known=context.cluster.unreadable_topics
    )
    gone = [t for t in names if read.is_missing(t) and context.cluster.has_topic(t)]
    await _forget_vanished(active, gone)
    replaced = [t for t, znode in read.found.items() if _is_another(context, t, znode)]
    if replaced:
        active.log.warning(
            "Topics were deleted from ZooKeeper and created again",
            topics=len(replaced),
            examples=examples(replaced),
        )
        await _forget(context, replaced)
    topics, problems = cluster_loading.without_shared_ids(context.cluster, read, active.log)
    unreadable_before = context.cluster.unreadable_topics
    context.cluster.note_unreadable(problems)
    # Topics that were malformed when they first appeared, and those.
    late = {topic: znode for topic, znode in topics.items() if not context.cluster.has_topic(topic)}
    growth: list[TopicPartition] = []
    for topic, znode in topics.items():
        if topic in late:
            continue
        known = context.cluster.partitions_of(topic)
        new = {
            tp: assignment
            for partition, assignment in znode.assignments.items()
            if (tp := TopicPartition(topic, partition)) not in known
        }
        if not new:
            continue
        if context.is_topic_queued_for_deletion(topic):
            await _restore_assignment(active, topic)
            continue
        for tp, assignment in new.items():
            context.set_assignment(tp, assignment)
        growth.extend(new)
    growth.extend(cluster_loading.add_topics(context, late))
    await assignment_repair.repair(active, growth)
    await topic_ids.settle(active, _without_id(context, late))
    await topic_id_notes.remember(context, late, active.log)
    if growth:
        active.log.info("New partitions", partitions=len(growth), examples=examples(growth))
        with context.trail.because(CauseKind.PARTITIONS_ADDED):
            await on_new_partition_creation(active, growth)
    known_before = {t: z for t, z in topics.items() if t not in late}
    await dropped_reassignments.restore(active, known_before)
    await topic_ids.take_nodes(active, known_before)
    if gone or growth or late or context.cluster.unreadable_topics is not unreadable_before:
        await PublishView(frozenset(gone).union((tp.topic for tp in growth), late))
    if late:
        await process_topic_deletion(active)  # one of them may have been marked before


def _is_another(context: ControllerContext, topic: str, znode: TopicZNode) -> bool:
    """Whether the node is not the one that the context knows: it was created by another
    transaction."""
    known = context.cluster.topic_czxids.get(topic, 0)
    return bool(known and znode.czxid) and znode.czxid != known


def _without_id(context: ControllerContext, topics: Iterable[str]) -> list[str]:
    return [topic for topic in topics if topic not in context.cluster.topic_ids]


async def _restore_assignment(active: ActiveController, topic: str) -> None:
    """A topic that is being deleted does not grow: write back what it had.

    The others are left as they are stored, on their way, too: that is abandoned, but not undone.
    """
    context = active.context
    (node,) = await ReadData([paths.topic(topic)])
    if node is None:
        return
    try:
        stored = decode_topic(topic, node.data).assignments
    except MalformedZNodeError:
        return  # it has changed again, and its watch says so
    before = TopicZNode(
        context.cluster.topic_ids.get(topic),
        {
            tp.partition: stored.get(tp.partition, assignment)
            for tp, assignment in context.cluster.partitions_of(topic).items()
        },
    )
    active.log.warning("Growth of a topic that is being deleted is undone", topic=topic)
    await Write(
        [SetData(paths.topic(topic), encode_topic(before), node.version)],
        guard=epoch_guard(context),
    )


async def process_topic_deletion(active: ActiveController) -> None:
    """Markers appeared in ``/admin/delete_topics``."""
    context = active.context
    (children,) = await ReadChildren([paths.DELETE_TOPICS], watch=True)
    marked = list(children or ())
    if not all(map(context.cluster.has_topic, marked)):
        # Created and marked in quick succession: the news of the creation may still be waiting.
        await process_topic_change(active)
    known = await deletion_markers.deletable(active, marked)
    fresh = [topic for topic in known if not context.is_topic_queued_for_deletion(topic)]
    if not fresh:
        return
    active.log.info("Topics are to be deleted", topics=len(fresh), examples=examples(fresh))
    for topic in fresh:
        context.queue_topic_for_deletion(topic)
    await abandon_reassignments(active, fresh)
    await PublishView(frozenset(fresh))
    await active.deletions.enqueue(fresh)
