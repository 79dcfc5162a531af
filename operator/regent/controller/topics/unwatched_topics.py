"""Topics that a take-over had from the standby's copy: their nodes have no watches yet.

Reading them sets the watches, and finds what has changed since the copy. A node that is the one
that the copy was made of need not be decoded, so that this costs a reading, and no more than that.
It begins when brokers have been sent what they have to know.

It is done in parts. Each goes to the end of the queue: events of brokers, and whatever else has
come meanwhile, are processed between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ArmTimer, Enqueue
from regent.controller.events import TopicsUnwatched
from regent.controller.giving_way import after_announcement_ms
from regent.controller.state.context import ControllerContext
from regent.controller.topics.topic_changes import process_partition_modifications
from regent.zk_data import paths
from regent.zk_data.permitted_reads import read_permitted

TIMER: Final = "topics unwatched"

PARTITIONS_AT_A_TIME: Final = 5_000
"""Partitions of the topics of a part: some 250 kB are read."""


async def note(active: ActiveController, mzxids: Mapping[str, int]) -> None:
    """Topics were not read: watch them later.

    Args:
        mzxids: Transaction that wrote each node as it is known.
    """
    active.context.unwatched_topics.extend(mzxids.items())
    if mzxids:
        delay_ms = after_announcement_ms(active.context.cluster.partition_count)
        await ArmTimer(TIMER, delay_ms, TopicsUnwatched())


async def process_topics_unwatched(active: ActiveController) -> None:
    """Set the watches of the next topics, and process those that have changed."""
    part = _next_part(active.context)
    nodes = await read_permitted([paths.topic(topic) for topic in part], watch=True)
    changed = [
        topic
        for (topic, mzxid), node in zip(part.items(), nodes, strict=True)
        if node is None or node.mzxid != mzxid
    ]
    if changed:
        await process_partition_modifications(active, changed)
    if active.context.unwatched_topics:
        await Enqueue(TopicsUnwatched())


def _next_part(context: ControllerContext) -> dict[str, int]:
    part: dict[str, int] = {}
    waiting, partitions = context.unwatched_topics, 0
    while waiting and partitions < PARTITIONS_AT_A_TIME:
        topic, mzxid = waiting.popleft()
        part[topic] = mzxid
        partitions += len(context.cluster.partitions_of(topic)) or 1
    return part
