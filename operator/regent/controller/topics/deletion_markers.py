"""Markers in ``/admin/delete_topics``: which of the topics can be deleted, and which markers go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from regent.admin.deletion_permission import Forbidden, deletion_forbidden
from regent.controller.active_controller import ActiveController
from regent.controller.brokers.reported_facts import facts_of_live_brokers
from regent.controller.state.context import ControllerContext
from regent.controller.topics.topic_node_removal import remove_topic_nodes
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.log import examples
from regent.zk_data import paths
from regent.zk_data.deletion_marker import decode_deletion_marker
from regent.zk_data.effects import Exists, Write
from regent.zk_data.operations import Delete
from regent.zk_data.permitted_reads import UnreadableZNode, read_permitted


async def deletion_forbidden_now(active: ActiveController) -> Forbidden | None:
    """Why no topic may be deleted now; None if topics may be."""
    return deletion_forbidden(
        delete_topic_enable=active.config.delete_topic_enable,
        live=await facts_of_live_brokers(active.context),
    )


async def deletable(
    active: ActiveController, marked: Sequence[str], *, complete_deletions: bool = False
) -> list[str]:
    """Which of the marked topics can be deleted. Removes the markers of topics that do not exist;
    if deletion is disabled, of all that are not being deleted yet.

    The marker of a topic that exists but cannot be read stays, so that the wish is not lost, and so
    does that of any topic until a broker has said whether deletion is disabled.

    Args:
        complete_deletions: Remove the configurations as well. For a failover: Kafka's controllers
            remove the node, the configuration and the marker of a topic one after the other, so
            the one before may have been interrupted, and the next topic of that name would get
            the configuration.

    Returns:
        The marked topics that can be deleted.
    """
    context = active.context
    context.broker_facts.deletions_wait = False
    if not marked:
        return []
    forbidden = await deletion_forbidden_now(active)
    if forbidden is not None and forbidden.is_known:
        await _remove_forbidden_markers(active, marked, forbidden.why)
        return []
    context.broker_facts.deletions_wait = forbidden is not None
    known = [topic for topic in marked if context.cluster.has_topic(topic)]
    unknown = [topic for topic in marked if not context.cluster.has_topic(topic)]
    if unknown:
        await _remove_void_markers(active, unknown, complete_deletions=complete_deletions)
    if forbidden is None:
        former = await _remove_markers_of_former_topics(active, known)
        return [topic for topic in known if topic not in former]
    waiting = [topic for topic in known if not context.is_topic_queued_for_deletion(topic)]
    if waiting:
        active.log.warning(
            "Deletion of topics waits",
            topics=len(waiting),
            examples=examples(waiting),
            reason=forbidden.why,
        )
    return []


async def _remove_forbidden_markers(
    active: ActiveController, marked: Sequence[str], why: str
) -> None:
    """A deletion that has begun ends: what is left of the topic could not serve."""
    context = active.context
    refused = [topic for topic in marked if not context.is_topic_queued_for_deletion(topic)]
    if refused:
        active.log.warning(
            "Topic deletion is disabled, markers removed",
            topics=len(refused),
            examples=examples(refused),
            reason=why,
        )
    await _remove_markers(context, refused)


async def _remove_markers_of_former_topics(
    active: ActiveController, topics: Sequence[str]
) -> Collection[str]:
    """Remove markers that mean a former topic of the name. Returns those names."""
    new = [topic for topic in topics if not active.context.is_topic_queued_for_deletion(topic)]
    markers = await read_permitted([paths.delete_topic(topic) for topic in new])
    meant = {
        topic: czxid
        for topic, marker in zip(new, markers, strict=True)
        if marker is not None
        and not isinstance(marker, UnreadableZNode)
        and (czxid := decode_deletion_marker(marker.data))
    }
    nodes = await read_permitted([paths.topic(topic) for topic in meant])
    former = [
        topic
        for (topic, czxid), node in zip(meant.items(), nodes, strict=True)
        if node is not None and not isinstance(node, UnreadableZNode) and node.czxid != czxid
    ]
    if former:
        active.log.warning(
            "Topics were created again before their deletion, markers removed",
            topics=len(former),
            examples=examples(former),
        )
        await _remove_markers(active.context, former)
    return former


async def _remove_void_markers(
    active: ActiveController, unknown: Sequence[str], *, complete_deletions: bool
) -> None:
    """Of topics that are not known, those that do not exist."""
    existing = await Exists([paths.topic(topic) for topic in unknown])
    void = [topic for topic, exists in zip(unknown, existing, strict=True) if not exists]
    unread = [topic for topic, exists in zip(unknown, existing, strict=True) if exists]
    if unread:
        active.log.error(
            "Topics to be deleted cannot be read, markers left",
            topics=len(unread),
            examples=examples(unread),
        )
    if complete_deletions:
        await remove_topic_nodes(active.context, void, active.log)
    else:
        await _remove_markers(active.context, void)


async def _remove_markers(context: ControllerContext, topics: Iterable[str]) -> None:
    await Write(
        [Delete(paths.delete_topic(topic), missing_ok=True) for topic in topics],
        guard=epoch_guard(context),
    )
