"""Notes in ZooKeeper for successors: which answers to leaders may have been overtaken.

They are written where an answer is overtaken, or is about to be: not for every answer. So they cost
nothing as a rule. (:mod:`regent.controller.partitions.overtaken_answers`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from regent.controller.state.context import ControllerContext
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog, report_malformed
from regent.model.partition import TopicPartition
from regent.zk_data.effects import Write
from regent.zk_data.operations import Check, Create, Delete, SetData, ZkError
from regent.zk_data.overtaken_answers import (
    OVERTAKEN_ANSWERS,
    PARENTS,
    decode_begun_terms,
    decode_overtaken_answer,
    encode_begun_terms,
    encode_overtaken_answer,
    overtaken_answer,
    partition_of_note,
)
from regent.zk_data.permitted_reads import list_permitted, read_permitted

_ATTEMPTS: Final = 2
"""The first may find no parents."""


async def remember(
    context: ControllerContext, epochs: Mapping[TopicPartition, int], *, guard: Check
) -> None:
    """Note the leader epochs of changes whose answers may be overtaken. An earlier note of a
    partition says enough. What may not be written is known until the next failover; who writes has
    it logged."""
    noted = context.answered_leaders.noted
    remaining = {tp: epoch for tp, epoch in epochs.items() if tp not in noted}
    for _ in range(_ATTEMPTS):
        if not remaining:
            return
        creations = [
            Create(overtaken_answer(tp), encode_overtaken_answer(epoch), exist_ok=True)
            for tp, epoch in remaining.items()
        ]
        results = await Write(creations, guard=guard)
        answers = dict(zip(remaining, results, strict=True))
        noted.update(
            {tp: epochs[tp] for tp, result in answers.items() if not isinstance(result, ZkError)}
        )
        remaining = {tp: epochs[tp] for tp, r in answers.items() if r is ZkError.NO_NODE}
        if remaining:
            await _create_parents(guard)


async def _create_parents(guard: Check) -> None:
    for path in PARENTS:
        await Write([Create(path, exist_ok=True)], guard=guard)


async def read_begun_terms(log: StructuredLog) -> tuple[int, ...]:
    """The terms that have begun as predecessors have noted them."""
    (node,) = await read_permitted([OVERTAKEN_ANSWERS])
    if node is None:
        return ()
    try:
        return decode_begun_terms(node.data) if node.data else ()
    except MalformedZNodeError as error:
        log.error("Malformed note", path=error.path, reason=error.reason)
        return ()


async def note_begun_terms(
    context: ControllerContext, epochs: tuple[int, ...], *, guard: Check
) -> None:
    """Replace the note about terms that have begun."""
    note = SetData(OVERTAKEN_ANSWERS, encode_begun_terms(epochs))
    (result,) = await Write([note], guard=guard)
    if result is ZkError.NO_NODE:
        await _create_parents(guard)
        await Write([note], guard=guard)
    context.answered_leaders.begun_terms = epochs


async def read(context: ControllerContext, log: StructuredLog) -> None:
    """Learn what predecessors have noted. A note that does not decode counts, too."""
    (children,) = await list_permitted([OVERTAKEN_ANSWERS], log)
    named = [tp for child in children or () if (tp := partition_of_note(child)) is not None]
    if not named:
        return
    noted = context.answered_leaders.noted
    nodes = await read_permitted([overtaken_answer(tp) for tp in named])
    malformed: list[MalformedZNodeError] = []
    for tp, node in zip(named, nodes, strict=True):
        if node is None:
            continue
        try:
            noted[tp] = decode_overtaken_answer(overtaken_answer(tp), node.data)
        except MalformedZNodeError as error:
            malformed.append(error)
            noted[tp] = -1
    report_malformed(log, "Malformed notes", [(e.path, e.reason) for e in malformed])


async def forget(
    context: ControllerContext, partitions: Iterable[TopicPartition], *, guard: Check
) -> None:
    """Delete the notes about partitions."""
    gone = list(partitions)
    if not gone:
        return
    await Write([Delete(overtaken_answer(tp), missing_ok=True) for tp in gone], guard=guard)
    for tp in gone:
        del context.answered_leaders.noted[tp]
