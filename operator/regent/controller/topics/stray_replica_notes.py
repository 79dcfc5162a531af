"""Notes in ZooKeeper about replicas that are left on a broker's disk. See ``stray_replicas.py``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog, examples, report_malformed
from regent.model.partition import NO_EPOCH, TopicPartition
from regent.zk_data.effects import Write
from regent.zk_data.operations import Check, Create, Delete, SetData, ZkError
from regent.zk_data.permitted_reads import UnreadableZNode, list_permitted, read_permitted
from regent.zk_data.stray_replicas import (
    PARENTS,
    STRAY_REPLICAS,
    decode_stray_replicas,
    encode_stray_replicas,
    strays_of,
    strays_on,
)

Note = tuple[int, str]
"""A broker and a topic: what one znode is about."""

Notes = Mapping[Note, Sequence[TopicPartition]]
"""Replicas that are noted, by broker and topic."""

Replicas = Mapping[int, Collection[TopicPartition]]
"""Replicas by broker."""

ATTEMPTS: Final = 5
"""At notes that somebody else changes at the same time."""


async def remember(context: ControllerContext, replicas: Replicas, log: StructuredLog) -> set[str]:
    """Note replicas that their broker is to delete, before nobody else knows of them any more.

    The answer of a live broker that is asked to delete them, under the present leader epoch or
    whatever epoch it knows, removes the note.

    Returns:
        The topics of which a replica could not be noted.
    """
    failed = await write(context, replicas, log)
    for broker_id, partitions in replicas.items():
        if broker_id in context.cluster.brokers:
            _expect_answer(context, broker_id, [tp for tp in partitions if tp.topic not in failed])
    return failed


async def write(context: ControllerContext, replicas: Replicas, log: StructuredLog) -> set[str]:
    """Note replicas, without expecting an answer yet.

    Returns:
        The topics of which a replica could not be noted.
    """
    notes: dict[Note, list[int]] = {}
    for broker_id, partitions in replicas.items():
        for tp in partitions:
            notes.setdefault((broker_id, tp.topic), []).append(tp.partition)
    if not notes:
        return set()
    guard = epoch_guard(context)
    parents = dict.fromkeys(strays_on(broker_id) for broker_id, _ in notes)
    for level in (*((parent,) for parent in PARENTS), parents):
        await Write([Create(path, exist_ok=True) for path in level], guard=guard)
    answers: dict[Note, ZkError] = {}
    remaining = notes
    for _ in range(ATTEMPTS):
        answers = await _write(remaining, guard, log)
        if not answers:
            break
        remaining = {note: notes[note] for note in answers}
    failed = {topic for _, topic in answers}
    if failed:
        log.error(
            "Stray replicas not noted",
            topics=len(failed),
            examples=examples(failed),
            answers=sorted({answer.value for answer in answers.values()}),
        )
    return failed


def _expect_answer(
    context: ControllerContext, broker_id: int, partitions: Iterable[TopicPartition]
) -> None:
    """A live broker is about to be asked to delete replicas, under their present leader epochs."""
    asked = context.stray_replicas.setdefault(broker_id, {})
    for tp in partitions:
        current = context.cluster.leadership.get(tp)
        epoch = NO_EPOCH if current is None else current.leader_epoch
        asked.setdefault(tp.topic, {})[tp] = epoch


async def _write(
    notes: Mapping[Note, Sequence[int]], guard: Check, log: StructuredLog
) -> dict[Note, ZkError]:
    """Add partitions to notes. Returns those that could not be written.

    A note that has the partitions already is left alone: it may be our own, written by a request
    whose answer was lost.
    """
    operations: dict[Note, Create | SetData] = {}
    closed: dict[Note, ZkError] = {}
    paths = [strays_of(*note) for note in notes]
    nodes = await read_permitted(paths)
    malformed: list[MalformedZNodeError] = []
    for (note, added), path, node in zip(notes.items(), paths, nodes, strict=True):
        if node is None:
            operations[note] = Create(path, encode_stray_replicas(added))
            continue
        if isinstance(node, UnreadableZNode):
            closed[note] = ZkError.NO_AUTH
            continue
        before = _decode(path, node.data, malformed)
        if not set(added) <= set(before):
            content = encode_stray_replicas({*before, *added})
            operations[note] = SetData(path, content, node.version)
    report_malformed(log, "Malformed notes replaced", [(e.path, e.reason) for e in malformed])
    results = await Write(list(operations.values()), guard=guard)
    return closed | {
        note: result
        for note, result in zip(operations, results, strict=True)
        if isinstance(result, ZkError)
    }


async def brokers_with_notes(log: StructuredLog) -> frozenset[str]:
    """Ids of the brokers that something is noted about."""
    (children,) = await list_permitted([STRAY_REPLICAS], log)
    return frozenset(children or ())


async def read(broker_ids: Sequence[int], log: StructuredLog) -> Notes:
    """The notes about brokers. One that does not decode is left alone."""
    children = await list_permitted([strays_on(broker_id) for broker_id in broker_ids], log)
    known = [
        (broker_id, topic)
        for broker_id, topics in zip(broker_ids, children, strict=True)
        for topic in topics or ()
    ]
    notes: dict[Note, tuple[TopicPartition, ...]] = {}
    paths = [strays_of(*note) for note in known]
    malformed: list[MalformedZNodeError] = []
    for note, path, node in zip(known, paths, await read_permitted(paths), strict=True):
        if node is not None:
            try:
                partitions = decode_stray_replicas(path, node.data)
            except MalformedZNodeError as error:
                malformed.append(error)
                continue
            notes[note] = tuple(TopicPartition(note[1], p) for p in partitions)
    report_malformed(log, "Malformed notes skipped", [(e.path, e.reason) for e in malformed])
    return notes


def _decode(path: str, data: bytes, malformed: list[MalformedZNodeError]) -> tuple[int, ...]:
    """What a note says that is about to be replaced; nothing if it does not decode: it is added to
    the malformed ones."""
    try:
        return decode_stray_replicas(path, data)
    except MalformedZNodeError as error:
        malformed.append(error)
        return ()


async def forget(context: ControllerContext, notes: Sequence[Note]) -> None:
    """Delete notes."""
    await Write(
        [Delete(strays_of(*note), missing_ok=True) for note in notes], guard=epoch_guard(context)
    )
