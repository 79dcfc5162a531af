"""Whether a replica that is noted as stray may be deleted: what ZooKeeper says of its topic now.

A note says what a broker had when it went down. The broker may host a topic of the same name since
then: another controller may have sent it there, or we did without learning that the deletion had
taken place. So what counts is the present:

- nothing of a topic that does not exist, or of a partition that nobody has led yet, can be lost.
  One whose state is known has been led, though somebody may have deleted that;
- a broker that is up for unknown time may host whatever is assigned to it, in the ISR or not. So
  may one that has just started, if it is in the ISR. A place in the ISR is no proof: it may be in
  the first ISR, and have died before it was sent the deletion. Its answer to the LeaderAndIsr
  decides: with INCONSISTENT_TOPIC_ID it says that its replica is of the former topic
  (inter.broker.protocol.version 2.8 and newer);
- a broker that has just started hosts nothing before it is sent a LeaderAndIsr. Outside the ISR it
  has no record that the ISR lacks; so what it has may go while a replica of the ISR is alive. If
  none is, it may be all that is left, and an unclean election may have to make do with it;
- what cannot be read says nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from regent.controller.state.context import ControllerContext
from regent.controller.topics.stray_replica_notes import Note
from regent.controller.transitions.partition_state_znodes import StatesRead, read_partition_states
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog, report_malformed
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import read_permitted
from regent.zk_data.topics import TopicZNode, decode_topic


class Finding(enum.Enum):
    """What is to be done with a replica that is noted as stray."""

    STRAY = enum.auto()
    """It may be deleted: nothing is lost."""
    HOSTED_SINCE_WHEN = enum.auto()
    """It may be of the topic that exists or of the former one: the broker will say."""
    DOUBTFUL = enum.auto()
    """It may be the only one: it is neither deleted nor forgotten."""


async def find(
    context: ControllerContext,
    notes: Mapping[Note, Iterable[TopicPartition]],
    log: StructuredLog,
    *,
    have_just_started: bool,
) -> dict[tuple[int, TopicPartition], Finding]:
    """Judge every replica of notes.

    Args:
        context: The cluster.
        notes: Partitions by broker and topic.
        log: For what cannot be read.
        have_just_started: Whether the brokers have, and were sent no LeaderAndIsr yet.
    """
    topics = await _read_topics(dict.fromkeys(topic for _, topic in notes), log)
    findings: dict[tuple[int, TopicPartition], Finding] = {}
    assigned: list[tuple[int, TopicPartition]] = []
    for (broker_id, topic), partitions in notes.items():
        for tp in partitions:
            finding = (
                Finding.STRAY
                if context.is_topic_queued_for_deletion(topic)
                else _by_assignment(broker_id, tp, topics[topic])
            )
            if finding is None:
                assigned.append((broker_id, tp))
            else:
                findings[broker_id, tp] = finding
    states = await read_partition_states(list(dict.fromkeys(tp for _, tp in assigned)), log)
    for broker_id, tp in assigned:
        findings[broker_id, tp] = _by_state(
            context, broker_id, tp, states, has_just_started=have_just_started
        )
    return findings


def _by_assignment(
    broker_id: int, tp: TopicPartition, topic: TopicZNode | MalformedZNodeError | None
) -> Finding | None:
    """None if the partition is assigned to the broker."""
    match topic:
        case None:
            return Finding.STRAY
        case MalformedZNodeError():
            return Finding.DOUBTFUL
        case TopicZNode():
            assignment = topic.assignments.get(tp.partition)
            if assignment is None:
                return Finding.DOUBTFUL if topic.problems else Finding.STRAY
            return None if broker_id in assignment.replicas else Finding.STRAY


def _by_state(
    context: ControllerContext,
    broker_id: int,
    tp: TopicPartition,
    read: StatesRead,
    *,
    has_just_started: bool,
) -> Finding:
    """For a partition that is assigned to the broker."""
    if tp in read.failures:
        return Finding.DOUBTFUL
    state = read.states.get(tp) or context.cluster.leadership.get(tp)
    if state is None:
        return Finding.STRAY
    if not has_just_started or broker_id in state.isr:
        # In the ISR, too: it may be in the first one, and never have been sent the deletion.
        return Finding.HOSTED_SINCE_WHEN
    alive = any(context.is_replica_online(member, tp) for member in state.isr)
    return Finding.STRAY if alive else Finding.DOUBTFUL


async def _read_topics(
    topics: Iterable[str], log: StructuredLog
) -> dict[str, TopicZNode | MalformedZNodeError | None]:
    names = list(topics)
    nodes = await read_permitted([paths.topic(topic) for topic in names])
    found = {topic: _decode(topic, node) for topic, node in zip(names, nodes, strict=True)}
    malformed = [each for each in found.values() if isinstance(each, MalformedZNodeError)]
    report_malformed(
        log, "Malformed topics skipped", [(error.path, error.reason) for error in malformed]
    )
    return found


def _decode(topic: str, node: ZNode | None) -> TopicZNode | MalformedZNodeError | None:
    try:
        return None if node is None else decode_topic(topic, node.data)
    except MalformedZNodeError as error:
        return error
