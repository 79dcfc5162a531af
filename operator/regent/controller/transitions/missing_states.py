"""States that somebody has deleted, of partitions that are known and could be led.

Nobody can be elected by a state that does not exist, and no follower can leave its ISR. So the
state is created again as it is known, once it is needed. It is not where nobody of the ISR is
alive: then it does not help, and who deletes it wants another controller to begin with whoever is
there.

Where leaders write ISRs themselves, the known one may be out of date. If it is known to be, of its
members only the leader has all that was committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from regent.controller.state.answered_leaders import ASK_SINCE
from regent.controller.state.causes import ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import (
    StatesRead,
    epoch_guard,
    read_partition_states,
)
from regent.model.log import StructuredLog, examples
from regent.model.partition import NO_LEADER, TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import Create
from regent.zk_data.permitted_reads import UnreadableZNode, read_permitted
from regent.zk_data.topics import encode_partition_state

RESTORED: Final = "States of partitions had been deleted, and are created again as they were known"


def leaders_write_isrs(context: ControllerContext) -> bool:
    """Whether leaders change ISRs in ZooKeeper themselves, and report it some seconds later."""
    return context.cluster.inter_broker_protocol < ASK_SINCE


async def restore_missing(
    context: ControllerContext,
    read: StatesRead,
    log: StructuredLog,
    *,
    watch: bool,
    have_changed: bool,
) -> frozenset[TopicPartition]:
    """Create states again that were not found, and read them. ``read`` is corrected.

    Args:
        have_changed: Whether the states have changed since they were known.

    Returns:
        The partitions whose states are there again. Their versions begin at 0.
    """
    if have_changed and leaders_write_isrs(context):
        _leave_leaders_alone_in_sync(context, read.missing)
    lost = [tp for tp in read.missing if _can_be_led(context, tp)]
    if not lost:
        return frozenset()
    same = await topics_as_known(context, lost)
    lost = [tp for tp in lost if tp.topic in same]
    if not lost:
        return frozenset()
    await create_parents(context, lost)
    known = context.cluster.leadership
    await Write(
        [Create(paths.partition_state(tp), encode_partition_state(known[tp])) for tp in lost],
        guard=epoch_guard(context),
    )
    again = await read_partition_states(lost, log, watch=watch)
    missing = frozenset(again.missing)
    found = [tp for tp in lost if tp not in missing]
    if found:
        log.warning(RESTORED, partitions=len(found), examples=examples(map(str, found)))
    restored = frozenset(found)
    read.missing[:] = [tp for tp in read.missing if tp not in restored]
    read.states.update(again.states)
    read.failures.update(again.failures)
    return restored


def _leave_leaders_alone_in_sync(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> None:
    """What the leaders have changed is lost: whom they have left in the ISR nobody knows."""
    known = context.cluster.leadership.get
    alone = {
        tp: msgspec.structs.replace(state, isr=(state.leader,))
        for tp in partitions
        if (state := known(tp)) is not None and state.leader != NO_LEADER
    }
    context.cluster.set_leadership(alone, ChangeKind.OBSERVED)


def _can_be_led(context: ControllerContext, tp: TopicPartition) -> bool:
    """Whether a known state allows somebody to lead."""
    state = context.cluster.leadership.get(tp)
    return (
        state is not None
        and not context.is_topic_queued_for_deletion(tp.topic)
        and any(
            context.is_replica_online(replica, tp, include_shutting_down=True)
            for replica in state.isr
        )
    )


async def topics_as_known(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> frozenset[str]:
    """The topics of partitions whose nodes are those that are known, or may not be read."""
    topics = list(dict.fromkeys(tp.topic for tp in partitions))
    nodes = await read_permitted([paths.topic(topic) for topic in topics])
    czxids = context.cluster.topic_czxids
    return frozenset(
        topic
        for topic, node in zip(topics, nodes, strict=True)
        if node is not None
        and (isinstance(node, UnreadableZNode) or node.czxid == czxids.get(topic))
    )


async def create_parents(context: ControllerContext, partitions: Iterable[TopicPartition]) -> None:
    """Create the nodes that states of partitions are below."""
    guard = epoch_guard(context)
    partitions = list(partitions)
    topics = dict.fromkeys(tp.topic for tp in partitions)
    await Write(
        [Create(paths.topic_partitions(topic), exist_ok=True) for topic in topics], guard=guard
    )
    await Write(
        [Create(paths.topic_partition(tp), exist_ok=True) for tp in partitions], guard=guard
    )
