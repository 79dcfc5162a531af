"""Reading brokers, topics and partition states from ZooKeeper into the context.

A malformed znode is logged with its path and skipped; everything else goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from regent.controller.brokers.announcement import (
    refuse_address_of_a_broker,
    refuse_unreachable,
)
from regent.controller.config import ControllerConfig
from regent.controller.state.causes import ChangeKind
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_epochs import read_states_again
from regent.controller.transitions.partition_state_znodes import read_partition_states
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog, report_malformed
from regent.model.partition import TopicPartition, partitions_of_topic
from regent.zk_data import paths
from regent.zk_data.brokers import decode_broker, is_controller_registration
from regent.zk_data.effects import ReadChildren
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, read_permitted
from regent.zk_data.topics import TopicZNode, decode_topic

MALFORMED_TOPICS: Final = "Malformed topics or partitions of topics skipped"


async def read_brokers(
    log: StructuredLog, *, known: Mapping[int, Broker] = MappingProxyType({})
) -> dict[int, Broker]:
    """All registered brokers by id; leaves watches on the list and on every registration.

    A Regent's registration is left out: see :mod:`regent.controller.brokers.own_registration`.
    A registration that does not decode is skipped, unless it is that of a broker of ``known`` in
    the same life (see :func:`decode_registration`).
    """
    (children,) = await ReadChildren([paths.BROKER_IDS], watch=True)
    broker_ids = sorted(
        broker_id
        for child in children or ()
        if (broker_id := paths.broker_id_of(child)) is not None
    )
    nodes = await read_permitted([paths.broker_id(b) for b in broker_ids], watch=True)
    brokers: dict[int, Broker] = {}
    for broker_id, node in zip(broker_ids, nodes, strict=True):
        if node is None or is_controller_registration(node):
            continue
        broker = decode_registration(broker_id, node, log, known=known.get(broker_id))
        if broker is not None:
            brokers[broker_id] = broker
    return brokers


def decode_registration(
    broker_id: int, node: ZNode, log: StructuredLog, *, known: Broker | None
) -> Broker | None:
    """The broker that a registration names; None if it does not decode.

    What counts for life and death is the ephemeral node, not its content: as long as it exists with
    the czxid that is known, the broker's session lives, and the broker serves its partitions. So a
    registration that was overwritten leaves the broker as it is known. Kafka's own controller fails
    at such an event and thereby keeps the broker, too. Of one that may not be read nothing is
    known: a broker that has bounced meanwhile says so in its answers (STALE_BROKER_EPOCH).
    """
    try:
        return decode_broker(broker_id, node)
    except MalformedZNodeError as error:
        if known is not None and (known.epoch == node.czxid or isinstance(node, UnreadableZNode)):
            log.error("Malformed broker registration kept", path=error.path, reason=error.reason)
            return known
        log.error("Malformed broker registration skipped", path=error.path, reason=error.reason)
        return None


def refuse_unsupported(brokers: Iterable[Broker], config: ControllerConfig) -> None:
    """Leave a cluster alone whose brokers need answers of the controller and cannot ask us.

    Raises:
        UnsupportedClusterError: See ``refuse_unreachable`` and ``refuse_address_of_a_broker`` of
            :mod:`~regent.controller.brokers.announcement`.
    """
    brokers = tuple(brokers)
    refuse_address_of_a_broker(
        brokers, [*config.served.values(), *config.listener_addresses.values()]
    )
    refuse_unreachable(
        brokers,
        config.served,
        announced_listeners=config.announced_listeners,
        inter_broker_listener=config.inter_broker_listener,
    )


class TopicsRead(NamedTuple):
    """What was read of topic nodes.

    Attributes:
        found: Their content. Missing and malformed ones are left out.
        problems: Of each topic why its node, or some partitions of it, cannot be read; None: they
            can, or there is no node. For :meth:`ClusterState.note_unreadable`.
    """

    found: dict[str, TopicZNode]
    problems: dict[str, str | None]

    def is_missing(self, topic: str) -> bool:
        """Whether a topic that was to be read has no node."""
        return topic not in self.found and self.problems[topic] is None


async def read_topics(
    topics: Sequence[str], log: StructuredLog, *, known: Mapping[str, str] = MappingProxyType({})
) -> TopicsRead:
    """Read topic nodes; leaves a watch on each.

    Args:
        known: Problems that were found before: they are not logged again. Nodes that cannot be read
            are read again whenever topics come or go.
    """
    nodes = await read_permitted([paths.topic(topic) for topic in topics], watch=True)
    found: dict[str, TopicZNode] = {}
    malformed: dict[str, str] = {}
    for topic, node in zip(topics, nodes, strict=True):
        if node is None:
            continue
        try:
            found[topic] = znode = decode_topic(topic, node.data, czxid=node.czxid)
        except MalformedZNodeError as error:
            malformed[topic] = error.reason
            continue
        # Hardly any has problems, and a failover reads all topics.
        if znode.problems and (described := znode.described_problems):
            malformed[topic] = described
    _report_news(malformed, log, known=known)
    return TopicsRead(found, dict.fromkeys(topics) | malformed)


def _report_news(
    malformed: Mapping[str, str], log: StructuredLog, *, known: Mapping[str, str]
) -> None:
    news = [
        (paths.topic(topic), why) for topic, why in malformed.items() if why != known.get(topic)
    ]
    report_malformed(log, MALFORMED_TOPICS, news)


def without_shared_ids(cluster: ClusterState, read: TopicsRead, log: StructuredLog) -> TopicsRead:
    """Leave out topics that are not known yet and have the id of another topic: somebody has copied
    a topic node.

    Clients and leaders name a topic by its id alone, so records and ISR changes of one would be
    taken for those of the other. Of several that are new the one stays that was created first.
    """
    fresh = {
        topic: znode.topic_id
        for topic, znode in read.found.items()
        if znode.topic_id is not None and not cluster.has_topic(topic)
    }
    ids = dict.fromkeys(fresh.values())
    if len(ids) == len(fresh) and not any(map(cluster.topic_name, ids)):
        return read
    owners: dict[uuid.UUID, str] = {}
    malformed: dict[str, str] = {}
    for topic in sorted(fresh, key=lambda topic: read.found[topic].czxid):
        topic_id = fresh[topic]
        owner = cluster.topic_name(topic_id) or owners.setdefault(topic_id, topic)
        if owner != topic:
            malformed[topic] = (
                f"its topic id is that of topic {owner}; take topic_id out of the node, and it "
                "gets another one"
            )
    _report_news(malformed, log, known=cluster.unreadable_topics)
    found = {topic: znode for topic, znode in read.found.items() if topic not in malformed}
    return TopicsRead(found, {**read.problems, **malformed})


def add_topics(
    context: ControllerContext, topics: Mapping[str, TopicZNode]
) -> list[TopicPartition]:
    """Take topics into the context as their nodes have them. Returns their partitions."""
    added: list[TopicPartition] = []
    for topic, znode in topics.items():
        context.cluster.add_topic(topic, znode.topic_id, znode.czxid)
        found = znode.assignments
        assignments = dict(zip(partitions_of_topic(topic, found), found.values(), strict=True))
        context.set_assignments(topic, assignments)
        added.extend(assignments)
    return added


class StatesLoaded(NamedTuple):
    """Which states are known, and which not.

    Attributes:
        mzxids: Transaction that wrote each state that is known, as it was read.
        unreadable: Partitions whose state exists and cannot be read: they are not new, and have no
            leader that anybody knows of.
    """

    mzxids: Mapping[TopicPartition, int]
    unreadable: list[TopicPartition]


async def load_leadership(
    context: ControllerContext, partitions: Collection[TopicPartition], log: StructuredLog
) -> StatesLoaded:
    """Read partition states and keep those that exist."""
    read = await read_partition_states(list(partitions), log)
    context.cluster.load_leadership(read.states)
    return StatesLoaded(read.mzxids, list(read.failures))


async def refresh_leadership(
    context: ControllerContext,
    partitions: Iterable[TopicPartition],
    log: StructuredLog,
    *,
    watch: bool = False,
    have_changed: bool = False,
) -> list[TopicPartition]:
    """Read the states of known partitions again. Returns the partitions that have leadership.

    Those that cannot be read, or whose partition epoch has gone down and cannot be raised, are
    noted, for the next watch check: no watch reports that they can.

    Args:
        watch: Whether to leave watches on the state znodes.
        have_changed: Whether others have reported that they have changed the states.
    """
    known = [tp for tp in partitions if context.cluster.assignment(tp) is not None]
    read = await read_states_again(context, known, log, watch=watch, have_changed=have_changed)
    context.cluster.set_leadership(read.states, ChangeKind.OBSERVED)
    for tp in known if context.unread_states else ():
        context.unread_states.pop(tp, None)
    context.unread_states.update(dict.fromkeys(read.failures))
    return [tp for tp in known if tp in context.cluster.leadership]
