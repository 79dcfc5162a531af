"""Topics keep their ids (KIP-516), whoever rewrites their nodes.

Clients and tools of Kafka 2.4 to 2.7 that write ZooKeeper themselves know no ids: a topic node that
they rewrite has none. The next failover of a Kafka controller gives the topic a new one, and every
broker refuses it with INCONSISTENT_TOPIC_ID (KAFKA-12835, KAFKA-14190). Here an id is known as long
as the topic node has the czxid under which it was learned, and goes back into the node at once. For
what happens while no Regent leads it is noted in ZooKeeper (``topic_id_notes.py``).

An id is never changed on purpose: brokers store it beside each replica and cannot follow. So an id
that differs is an accident, too, and the id counts that brokers host. Nothing of this takes place
in a cluster without ids.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import ReplicaState
from regent.controller.topics import topic_id_notes
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.transitions.replica_state_machine import by_broker
from regent.model.errors import MalformedZNodeError
from regent.model.log import examples
from regent.model.topic import TOPIC_IDS_SINCE
from regent.protocol.control_requests import LeaderAndIsrResponse
from regent.protocol.error_codes import INCONSISTENT_TOPIC_ID, error_name
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import SetData, Written, ZkError, ZNode
from regent.zk_data.permitted_reads import read_permitted
from regent.zk_data.topic_ids import TopicIncarnation
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic

_INCONSISTENT = error_name(INCONSISTENT_TOPIC_ID)


class _Source(enum.Enum):
    """Where the id comes from that a topic is to have."""

    NODE = enum.auto()
    KNOWN = enum.auto()
    NOTE = enum.auto()
    NEW = enum.auto()


class _Choice(NamedTuple):
    topic_id: uuid.UUID
    source: _Source


class _Node(NamedTuple):
    """A topic node that may be written back."""

    content: TopicZNode
    version: int
    czxid: int


def are_in_use(context: ControllerContext) -> bool:
    """Whether topics of this cluster have ids, or get them now."""
    cluster = context.cluster
    return cluster.inter_broker_protocol >= TOPIC_IDS_SINCE or bool(cluster.topic_ids)


async def settle(active: ActiveController, topics: Iterable[str]) -> list[str]:
    """Give topics the ids that they are to have, in their nodes and in the context.

    From inter.broker.protocol.version 2.8 on every topic has an id; lower ones get no new one.

    The nodes are read again: what is written back must be what they hold now, and a node that
    changes in between is read once more. Partitions that appear that way are reported by its watch.

    Returns:
        The topics whose id is another one than before, or was not known.
    """
    if not are_in_use(active.context):
        return []
    changed: list[str] = []
    remaining = list(topics)
    while remaining:
        nodes = await _read(remaining)
        choices = await _choose(active, nodes)
        writes = {
            topic: SetData(
                paths.topic(topic),
                encode_topic(TopicZNode(choice.topic_id, nodes[topic].content.assignments)),
                nodes[topic].version,
            )
            for topic, choice in choices.items()
            if choice.topic_id != nodes[topic].content.topic_id
        }
        results = await Write(list(writes.values()), guard=epoch_guard(active.context))
        answers = dict(zip(writes, results, strict=True))
        remaining = [topic for topic in writes if answers[topic] is ZkError.BAD_VERSION]
        for topic, choice in choices.items():
            answer = answers.get(topic)
            if isinstance(answer, ZkError):
                if answer is not ZkError.BAD_VERSION:
                    active.log.warning("Topic id not stored", topic=topic, answer=answer.value)
            elif _take(active, topic, choice, nodes[topic].czxid):
                changed.append(topic)
        _report(active, nodes, choices, [t for t in writes if isinstance(answers[t], Written)])
    return changed


async def _read(topics: Iterable[str]) -> dict[str, _Node]:
    """Topic nodes, without those that are gone, or of which not everything decodes."""
    names = list(topics)
    nodes = await read_permitted([paths.topic(topic) for topic in names])
    found: dict[str, _Node] = {}
    for topic, node in zip(names, nodes, strict=True):
        content = _decode_whole(topic, node)
        if node is not None and content is not None:
            found[topic] = _Node(content, node.version, node.czxid)
    return found


def _decode_whole(topic: str, node: ZNode | None) -> TopicZNode | None:
    try:
        content = None if node is None else decode_topic(topic, node.data)
    except MalformedZNodeError:
        return None
    return None if content is None or content.problems else content


async def _choose(active: ActiveController, nodes: Mapping[str, _Node]) -> dict[str, _Choice]:
    """The id of each topic; topics that get none are left out."""
    context = active.context
    lost = [
        TopicIncarnation(topic, node.czxid)
        for topic, node in nodes.items()
        if _stored(context, topic, node) is None and _known(context, topic, node) is None
    ]
    noted = await topic_id_notes.read(lost, active.log)
    choices: dict[str, _Choice] = {}
    for topic, node in nodes.items():
        known, stored = _known(context, topic, node), _stored(context, topic, node)
        note = noted.get(TopicIncarnation(topic, node.czxid))
        if known is not None and (stored is None or not _is_refused(context, topic)):
            choices[topic] = _Choice(known, _Source.KNOWN)
        elif stored is not None:
            choices[topic] = _Choice(stored, _Source.NODE)
        elif note is not None:
            choices[topic] = _Choice(note, _Source.NOTE)
        elif context.cluster.inter_broker_protocol >= TOPIC_IDS_SINCE:
            choices[topic] = _Choice(active.chance.topic_id(), _Source.NEW)
    return choices


def _known(context: ControllerContext, topic: str, node: _Node) -> uuid.UUID | None:
    """The id under which the context knows this very topic."""
    cluster = context.cluster
    return cluster.topic_ids.get(topic) if cluster.topic_czxids.get(topic) == node.czxid else None


def _stored(context: ControllerContext, topic: str, node: _Node) -> uuid.UUID | None:
    """The id in a topic's node, unless it is that of another topic."""
    stored = node.content.topic_id
    if stored is not None and context.cluster.topic_name(stored) not in (None, topic):
        return None
    return stored


def _is_refused(context: ControllerContext, topic: str) -> bool:
    """Whether a broker hosts the topic under another id than the known one."""
    return any(
        error == _INCONSISTENT
        for tp in context.cluster.partitions_of(topic)
        for _, error in context.refusals.of_partition(tp)
    )


def _take(active: ActiveController, topic: str, choice: _Choice, czxid: int) -> bool:
    """Take an id over. Whether it is another one than before."""
    cluster = active.context.cluster
    is_changed = cluster.topic_ids.get(topic) != choice.topic_id
    cluster.add_topic(topic, choice.topic_id, czxid)
    return is_changed


def _report(
    active: ActiveController,
    nodes: Mapping[str, _Node],
    choices: Mapping[str, _Choice],
    written: Iterable[str],
) -> None:
    restored = [t for t in written if choices[t].source in (_Source.KNOWN, _Source.NOTE)]
    if not restored:
        return
    active.context.restored_topic_ids += len(restored)
    dropped = [t for t in restored if nodes[t].content.topic_id is None]
    if dropped:
        active.log.warning(
            "Topic ids restored: a client of Kafka 2.4 to 2.7 has dropped them from topic nodes",
            topics=len(dropped),
            examples=examples(dropped),
        )
    replaced = [t for t in restored if nodes[t].content.topic_id is not None]
    if replaced:
        active.log.error(
            "Topic ids restored: somebody has replaced ids that brokers host",
            topics=len(replaced),
            examples=examples(
                f"{t}: {choices[t].topic_id} instead of {nodes[t].content.topic_id}"
                for t in replaced
            ),
        )


async def take_nodes(active: ActiveController, topics: Mapping[str, TopicZNode]) -> None:
    """Topic nodes have changed: restore the ids that are missing or others than before."""
    cluster = active.context.cluster
    gives_ids = cluster.inter_broker_protocol >= TOPIC_IDS_SINCE

    def is_suspect(topic: str, node: TopicZNode) -> bool:
        if cluster.topic_ids.get(topic) != node.topic_id:
            return True
        if node.topic_id is None:
            return gives_ids
        return cluster.topic_czxids.get(topic) != node.czxid

    suspects = [
        topic
        for topic, node in topics.items()
        if is_suspect(topic, node) and not active.context.is_topic_queued_for_deletion(topic)
    ]
    before = {topic: cluster.topic_ids.get(topic) for topic in suspects}
    changed = await settle(active, suspects) if suspects else []
    for topic in changed:
        if before[topic] is not None:
            active.log.error(
                "Topic id is another one than before: brokers refuse that, or the topic is new",
                topic=topic,
                before=str(before[topic]),
                now=str(cluster.topic_ids[topic]),
            )
        await topic_id_notes.replace(active.context, topic, active.log)
    await announce(active, changed)


async def take_leader_and_isr_answer(
    active: ActiveController, response: LeaderAndIsrResponse
) -> bool:
    """Brokers refuse the id of a topic: the noted one counts, if it is another one.

    So it is where a Kafka controller that led meanwhile has found a topic node without its id, and
    given it a new one.

    Returns:
        Whether there was such a topic. Then the answer says nothing of the replicas that are there:
        another one follows.
    """
    context = active.context
    refused = dict.fromkeys(
        tp.topic
        for tp, code in response.partition_errors.items()
        if code == INCONSISTENT_TOPIC_ID and response.broker_id in context.cluster.replicas(tp)
    )
    wanted = topic_id_notes.incarnations(context, refused)
    noted = await topic_id_notes.read(wanted, active.log)
    other = {
        each: topic_id
        for each, topic_id in noted.items()
        if topic_id != context.cluster.topic_ids.get(each.topic)
    }
    if not other:
        return False
    # Known from now on; what the node says is then replaced, unless it changes meanwhile.
    for each, topic_id in other.items():
        context.cluster.add_topic(each.topic, topic_id, each.czxid)
        for broker_id in context.cluster.brokers:
            context.refusals.forget_replicas(broker_id, context.cluster.partitions_of(each.topic))
    topics = [each.topic for each in other]
    await settle(active, topics)
    await announce(active, topics)
    await PublishView(frozenset(topics))
    return True


async def announce(active: ActiveController, topics: Iterable[str]) -> None:
    """Send the ids of topics to all replicas that run: brokers take a first one over, and obey
    the one that they host, without a new leader epoch."""
    context = active.context
    partitions = [tp for topic in topics for tp in context.cluster.partitions_of(topic)]
    if partitions:
        replicas = by_broker(
            context,
            partitions,
            lambda b, tp: context.replica_state(b, tp) is ReplicaState.ONLINE,
        )
        await active.replicas.handle_state_changes(replicas, ReplicaState.ONLINE)
