"""Notes in ZooKeeper about the present life of brokers, so that a failover does not forget them.

Upstream's controller keeps in memory which brokers are shutting down: one that is elected in the
middle of a controlled shutdown gives the broker leaders that it is about to lose. Whose controller
was deposed (``deposed_controllers.py``) nobody else remembers at all. A note names the broker
epoch, so it holds for one life of the broker only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog
from regent.zk_data import paths
from regent.zk_data.broker_notes import BrokerNotes, decode_broker_note, encode_broker_note
from regent.zk_data.effects import Write
from regent.zk_data.operations import Create, Delete, Operation, SetData, ZkError
from regent.zk_data.permitted_reads import list_permitted, read_permitted

ATTEMPTS: Final = 4
"""The first may find no parents, the second a node of a former life; one is to spare."""


async def remember(
    context: ControllerContext,
    notes: BrokerNotes,
    brokers: Sequence[Broker],
    log: StructuredLog,
) -> None:
    """Note something of brokers. One that cannot be noted is logged: it is known until the next
    failover."""
    guard = epoch_guard(context)
    remaining: dict[int, Operation] = {b.broker_id: _creation(notes, b) for b in brokers}
    answers: dict[int, ZkError] = {}
    for _ in range(ATTEMPTS):
        results = await Write(list(remaining.values()), guard=guard)
        answers = {
            broker_id: result
            for broker_id, result in zip(remaining, results, strict=True)
            if isinstance(result, ZkError)
        }
        if not answers:
            return
        if ZkError.NO_NODE in answers.values():
            for path in notes.parents:
                await Write([Create(path, exist_ok=True)], guard=guard)
        remaining = {
            broker.broker_id: _creation(notes, broker)
            if answers[broker.broker_id] is not ZkError.NODE_EXISTS
            else _replacement(notes, broker)
            for broker in brokers
            if broker.broker_id in answers
        }
    log.error(
        "Notes about brokers not written",
        path=notes.parent,
        brokers=list(answers),
        answers=sorted({answer.value for answer in answers.values()}),
    )


def _creation(notes: BrokerNotes, broker: Broker) -> Create:
    return Create(notes.path(broker.broker_id), encode_broker_note(broker.epoch))


def _replacement(notes: BrokerNotes, broker: Broker) -> SetData:
    return SetData(notes.path(broker.broker_id), encode_broker_note(broker.epoch))


async def read(context: ControllerContext, notes: BrokerNotes, log: StructuredLog) -> list[int]:
    """Registered brokers that are noted in their present life. All other notes are deleted."""
    (children,) = await list_permitted([notes.parent], log)
    noted = sorted(b for child in children or () if (b := paths.broker_id_of(child)) is not None)
    if not noted:
        return []
    nodes = await read_permitted([notes.path(broker_id) for broker_id in noted])
    valid: list[int] = []
    for broker_id, node in zip(noted, nodes, strict=True):
        broker = context.cluster.brokers.get(broker_id)
        if node is None or broker is None:
            continue
        try:
            epoch = decode_broker_note(notes.path(broker_id), node.data)
        except MalformedZNodeError as error:
            log.error("Malformed note deleted", path=error.path, reason=error.reason)
            continue
        if epoch == broker.epoch:
            valid.append(broker_id)
    outdated = [broker_id for broker_id in noted if broker_id not in valid]
    if outdated:
        await forget(context, notes, outdated)
    return valid


async def forget(context: ControllerContext, notes: BrokerNotes, broker_ids: Iterable[int]) -> None:
    """Delete the notes about brokers, if there are any."""
    await Write(
        [Delete(notes.path(b), missing_ok=True) for b in broker_ids],
        guard=epoch_guard(context),
    )
