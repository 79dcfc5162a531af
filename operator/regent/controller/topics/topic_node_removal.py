"""Removing the znodes of topics whose replicas are gone.

What lies below a topic's node goes first, level by level. The last nodes of a topic (its node, its
configuration, the note of its id, the marker that asks for its deletion) go in one transaction.
Kafka removes them one after the other, and a topic that somebody creates in between under the same
name loses its new configuration, or is taken for marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regent.controller.state.context import ControllerContext
from regent.controller.topics.topic_id_notes import incarnations
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import UnexpectedZooKeeperError, ZooKeeperUnavailableError
from regent.model.log import StructuredLog
from regent.zk_data import paths
from regent.zk_data.effects import Exists, Multi, Write
from regent.zk_data.operations import Create, Delete, Operation, WriteResult, ZkError
from regent.zk_data.permitted_reads import list_permitted
from regent.zk_data.topic_ids import topic_id_path
from regent.zk_data.transactions import all_written, raise_if_moved

TOPICS_PER_TRANSACTION = 50
ATTEMPTS = 5
"""At the last nodes of a topic, where somebody else changes them at the same time."""


async def remove_topic_nodes(
    context: ControllerContext, topics: Sequence[str], log: StructuredLog
) -> list[str]:
    """Remove everything that ZooKeeper has of topics.

    Returns:
        The topics of which nothing is left. The others keep their marker: somebody wrote below
        their node just now.

    Raises:
        ControllerMovedError: Another controller was elected.
    """
    await _remove_below(context, topics, log)
    removed: list[str] = []
    for chunk in _chunks(topics):
        removed += await _remove_last_nodes(context, chunk, log)
    return removed


def _chunks(topics: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(topics), TOPICS_PER_TRANSACTION):
        yield topics[start : start + TOPICS_PER_TRANSACTION]


async def _remove_below(
    context: ControllerContext, topics: Sequence[str], log: StructuredLog
) -> None:
    """Remove what lies below the nodes of topics as it is in ZooKeeper, the deepest first.

    What cannot be seen stays, and so does its topic: a node with children cannot be deleted.
    """
    levels = [[paths.topic(topic) for topic in topics]]
    while levels[-1]:
        children = await list_permitted(levels[-1], log)
        levels.append(
            [
                f"{path}/{child}"
                for path, names in zip(levels[-1], children, strict=True)
                for child in names or ()
            ]
        )
    for level in levels[-2:0:-1]:
        await Write([Delete(path, missing_ok=True) for path in level], guard=epoch_guard(context))


async def _remove_last_nodes(
    context: ControllerContext, topics: Sequence[str], log: StructuredLog
) -> Sequence[str]:
    """The last nodes of topics in one transaction; if one conflicts, each topic alone.

    A lost answer, or a node that appeared or vanished meanwhile, leads to reading again what is
    left. A topic without its marker is removed then: what exists under its name may be a new topic.
    """
    results: Sequence[WriteResult] = ()
    for attempt in range(ATTEMPTS):
        existing = await _existing_nodes(context, topics)
        if attempt:
            existing = {t: nodes for t, nodes in existing.items() if paths.delete_topic(t) in nodes}
        if not any(existing.values()):
            return topics
        operations = [op for topic, nodes in existing.items() for op in _removal(topic, nodes)]
        try:
            results = await Multi([epoch_guard(context), *operations])
        except ZooKeeperUnavailableError:
            continue
        except UnexpectedZooKeeperError as error:
            if len(topics) > 1:
                return await _remove_each_alone(context, topics, log)
            log.error("Topic nodes not deleted", topics=list(topics), answers=[str(error)])
            return ()
        if all_written(results):
            return topics
        raise_if_moved(results)
        if len(topics) > 1:
            return await _remove_each_alone(context, topics, log)
        if ZkError.NO_NODE not in results and ZkError.NODE_EXISTS not in results:
            break
    problems = [r.value for r in results if isinstance(r, ZkError) and r is not ZkError.ROLLED_BACK]
    log.error("Topic nodes not deleted", topics=list(topics), answers=problems)
    return ()


async def _remove_each_alone(
    context: ControllerContext, topics: Sequence[str], log: StructuredLog
) -> Sequence[str]:
    alone = [await _remove_last_nodes(context, [topic], log) for topic in topics]
    return [topic for removed in alone for topic in removed]


async def _existing_nodes(
    context: ControllerContext, topics: Sequence[str]
) -> dict[str, list[str]]:
    """Those of the last nodes of each topic that exist, the note of its id among them."""
    nodes = {
        topic: [
            paths.topic_config(topic),
            *map(topic_id_path, incarnations(context, [topic])),
            paths.topic(topic),
            paths.delete_topic(topic),
        ]
        for topic in topics
    }
    answers = iter(await Exists([path for last in nodes.values() for path in last]))
    return {topic: [path for path in last if next(answers)] for topic, last in nodes.items()}


def _removal(topic: str, existing: Sequence[str]) -> Iterator[Operation]:
    config = paths.topic_config(topic)
    if existing and config not in existing:
        yield Create(config)  # fails if somebody configures the topic just now, and is deleted, too
        yield Delete(config)
    yield from map(Delete, existing)
