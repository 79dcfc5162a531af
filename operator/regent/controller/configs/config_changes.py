"""Configuration changes that bear on the controller.

Inside a broker its dynamic configuration informs the controller of them. A controller that is no
broker watches the notifications in ``/config/changes`` itself.
"""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.configs.unclean_election_config import (
    load_unclean_election_default,
    unclean_election_flags,
)
from regent.controller.effects import PublishView
from regent.controller.state.causes import CauseKind
from regent.controller.state.states import PartitionState
from regent.controller.znodes.notifications import read_notifications
from regent.zk_data import paths
from regent.zk_data.config import decode_config_change
from regent.zk_data.effects import ReadChildren


async def process_config_change(active: ActiveController) -> None:
    """Look at the notifications that are new: topics may elect uncleanly now, views are stale.

    Notifications are the brokers' to delete (they do after 15 minutes), so ours is to remember
    which ones we have read. Their numbers would not do: one node that somebody else numbered, or a
    parent that was recreated and counts from 0, would make us miss changes.
    """
    context = active.context
    (children,) = await ReadChildren([paths.CONFIG_CHANGES], watch=True)
    fresh = [child for child in children or () if child not in context.seen_config_changes]
    context.seen_config_changes = dict.fromkeys(children or ())
    topics: dict[str, None] = {}
    defaults_changed = False
    nodes = [paths.config_change(child) for child in fresh]
    for entity in await read_notifications(active.log, nodes, decode_config_change):
        if entity.entity_type == "topics":
            topics[entity.entity_name] = None
            context.note_config_change(entity.entity_name)
        elif entity.entity_type == "brokers" and entity.entity_name == paths.DEFAULT_ENTITY:
            defaults_changed = True
    changed = frozenset(topics)
    if defaults_changed:
        changed |= await _default_changed(active)
    await elect_where_unclean_is_allowed(
        active, [t for t in topics if context.cluster.has_topic(t)]
    )
    if changed:
        await PublishView(changed)


async def _default_changed(active: ActiveController) -> frozenset[str]:
    """Elect where the new default allows it. Returns the topics that have new leaders."""
    before = active.context.cluster.unclean_leader_election_default
    await load_unclean_election_default(
        active.context, active.config.unclean_leader_election_enable, active.log
    )
    if before or not active.context.cluster.unclean_leader_election_default:
        return frozenset()
    active.log.warning("Unclean leader election is enabled for the cluster")
    leaderless = list(active.context.partitions_without_leader)
    with active.context.trail.because(CauseKind.UNCLEAN_ELECTION_ENABLED):
        await active.partitions.trigger_online()
    state_of = active.context.partition_state
    return frozenset(tp.topic for tp in leaderless if state_of(tp) is PartitionState.ONLINE)


async def elect_where_unclean_is_allowed(active: ActiveController, topics: list[str]) -> None:
    """Elect for topics that have offline partitions and allow unclean leader election."""
    context = active.context
    candidates = [
        topic
        for topic in topics
        if any(
            context.partition_state(tp) is PartitionState.OFFLINE
            for tp in context.cluster.partitions_of(topic)
        )
    ]
    if not candidates:
        return
    flags = await unclean_election_flags(context, candidates, active.log)
    allowed = {topic: None for topic in candidates if flags[topic]}
    if allowed:
        with context.trail.because(CauseKind.UNCLEAN_ELECTION_ENABLED):
            await active.partitions.trigger_online(topics=allowed)
