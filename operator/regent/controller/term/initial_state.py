"""Where the initial state of topics comes from: the standby's copy, or ZooKeeper.

Both give the context the same: topics with their ids, assignments, leadership. Where there is no
copy, or a doubt about it, ZooKeeper is read.

The copy comes without watches. Topic nodes are read to set them once the failover is over
(:mod:`regent.controller.topics.unwatched_topics`): that finds whatever has changed meanwhile, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ReadStandby
from regent.controller.state.standby_copy import StandbyCopy
from regent.controller.term import cluster_loading
from regent.controller.term.cluster_loading import StatesLoaded
from regent.controller.topics import unwatched_topics
from regent.model.log import report_malformed
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import ReadChildren


class TopicsLoaded(NamedTuple):
    """Where the topics are from, and what is known of their partitions' states.

    Attributes:
        source: In words.
        states: What could be read.
    """

    source: str
    states: StatesLoaded


async def load_topics(active: ActiveController) -> TopicsLoaded:
    """Topics, assignments, states; leaves a watch on the list of topics."""
    (children,) = await ReadChildren([paths.BROKER_TOPICS], watch=True)
    topics = sorted(children or ())
    copy = await ReadStandby()
    if copy is not None and _has_all(copy, topics, active):
        return TopicsLoaded("standby", await _take(active, copy, topics))
    return TopicsLoaded("ZooKeeper", await _read(active, topics))


def _has_all(copy: StandbyCopy, topics: Sequence[str], active: ActiveController) -> bool:
    """Whether the copy has the topics that were just listed, and no others. Some may have come or
    gone since; it may also be a defect."""
    if copy.cluster.shares_topic_ids:
        active.log.warning("Topics of the standby's copy have one id, reading everything")
        return False
    if copy.topic_mzxids.keys() == frozenset(topics):
        return True
    active.log.warning(
        "The standby's copy has other topics than ZooKeeper, reading everything",
        listed=len(topics),
        copied=len(copy.topic_mzxids),
    )
    return False


async def _take(active: ActiveController, copy: StandbyCopy, topics: Sequence[str]) -> StatesLoaded:
    active.context.cluster.take_topics(copy.cluster)
    unreadable: list[TopicPartition] = []
    unreadable_topics = active.context.cluster.unreadable_topics
    report_malformed(
        active.log,
        cluster_loading.MALFORMED_TOPICS,
        [(paths.topic(topic), why) for topic, why in unreadable_topics.items()],
    )
    report_malformed(
        active.log,
        "Malformed partition states skipped",
        [(error.path, error.reason) for error in copy.malformed_states],
    )
    for error in copy.malformed_states:
        tp = paths.partition_of_state(error.path)
        if tp is not None:
            unreadable.append(tp)
    await unwatched_topics.note(active, {topic: copy.topic_mzxids[topic] for topic in topics})
    return StatesLoaded(copy.state_mzxids, unreadable)


async def _read(active: ActiveController, topics: Sequence[str]) -> StatesLoaded:
    read = await cluster_loading.read_topics(topics, active.log)
    cluster = active.context.cluster
    found, problems = cluster_loading.without_shared_ids(cluster, read, active.log)
    partitions = cluster_loading.add_topics(active.context, found)
    cluster.note_unreadable(problems)
    return await cluster_loading.load_leadership(active.context, partitions, active.log)
