"""Topic ids remembered in ZooKeeper beside the topic nodes, where tools drop them.

One node for each topic that has an id, written once, when the id becomes known. A failover compares
the names with the topics by one list, and reads a note only for a topic that has lost its id. See
``topic_ids.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog, examples, report_malformed
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import Create, Delete, ZkError
from regent.zk_data.permitted_reads import UnreadableZNode, list_permitted, read_permitted
from regent.zk_data.topic_ids import (
    PARENTS,
    TOPIC_IDS,
    TopicIncarnation,
    decode_topic_id,
    encode_topic_id,
    incarnation_of,
    topic_id_name,
    topic_id_path,
)


def incarnations(context: ControllerContext, topics: Iterable[str]) -> list[TopicIncarnation]:
    """Those of the topics that have an id."""
    ids, czxids = context.cluster.topic_ids, context.cluster.topic_czxids
    return [
        TopicIncarnation(topic, czxids[topic])
        for topic in topics
        if topic in ids and topic in czxids
    ]


async def remember(context: ControllerContext, topics: Iterable[str], log: StructuredLog) -> None:
    """Note the ids of topics, where they have one. An existing note stays as it is."""
    ids = context.cluster.topic_ids
    operations = [
        Create(topic_id_path(each), encode_topic_id(ids[each.topic]), exist_ok=True)
        for each in incarnations(context, topics)
    ]
    if not operations:
        return
    guard = epoch_guard(context)
    results = await Write(operations, guard=guard)
    if ZkError.NO_NODE in results:
        for parent in PARENTS:
            await Write([Create(parent, exist_ok=True)], guard=guard)
        results = await Write(operations, guard=guard)
    failed = [
        operation.path
        for operation, result in zip(operations, results, strict=True)
        if isinstance(result, ZkError)
    ]
    if failed:
        log.error("Topic ids not noted", topics=len(failed), examples=examples(failed))


async def replace(context: ControllerContext, topic: str, log: StructuredLog) -> None:
    """Note another id of a topic than before."""
    await forget(context, incarnations(context, [topic]))
    await remember(context, [topic], log)


async def forget(context: ControllerContext, gone: Sequence[TopicIncarnation]) -> None:
    """Delete notes."""
    if gone:
        operations = [Delete(topic_id_path(each), missing_ok=True) for each in gone]
        await Write(operations, guard=epoch_guard(context))


async def read(
    wanted: Sequence[TopicIncarnation], log: StructuredLog
) -> dict[TopicIncarnation, uuid.UUID]:
    """The noted ids of topics, as far as there are any."""
    if not wanted:
        return {}
    note_paths = list(map(topic_id_path, wanted))
    found: dict[TopicIncarnation, uuid.UUID] = {}
    malformed: list[MalformedZNodeError] = []
    for each, path, node in zip(wanted, note_paths, await read_permitted(note_paths), strict=True):
        if node is not None:
            try:
                found[each] = decode_topic_id(path, node.data)
            except MalformedZNodeError as error:
                malformed.append(error)
    report_malformed(log, "Malformed notes skipped", [(e.path, e.reason) for e in malformed])
    return found


async def complete(context: ControllerContext, log: StructuredLog) -> None:
    """After a failover: note what is not noted, and forget what is noted of topics that are gone.

    Costs one list and what has changed while another controller led.
    """
    (children,) = await list_permitted([TOPIC_IDS], log)
    noted = dict.fromkeys(children or ())
    current = incarnations(context, context.cluster.topics)
    await remember(
        context, [each.topic for each in current if topic_id_name(each) not in noted], log
    )
    known = dict.fromkeys(map(topic_id_name, current))
    others = [
        each for name in noted if name not in known and (each := incarnation_of(name)) is not None
    ]
    nodes = await read_permitted([paths.topic(each.topic) for each in others]) if others else ()
    await forget(
        context,
        [
            each
            for each, node in zip(others, nodes, strict=True)
            if node is None or not (isinstance(node, UnreadableZNode) or node.czxid == each.czxid)
        ],
    )
