"""Notes in ZooKeeper about brokers that are shutting down, so that a failover does not forget them.

Upstream's controller keeps them in memory: one that is elected in the middle of a controlled
shutdown gives the broker leaders that it is about to lose. A note names the broker epoch, so it
holds for one life of the broker only. It is written before anything else is done, and goes when
that life has ended or the shutdown was given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from regent.controller.effects import Write
from regent.controller.log import ControllerLog
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.znodes.permitted_reads import list_permitted, read_permitted
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, Operation, SetData, ZkError
from regent.zk_data.shutting_down_brokers import (
    PARENTS,
    SHUTTING_DOWN_BROKERS,
    decode_shutting_down_broker,
    encode_shutting_down_broker,
    shutting_down_broker,
)

ATTEMPTS: Final = 4
"""The first may find no parents, the second a node of a former life; one is to spare."""


async def remember(
    context: ControllerContext, brokers: Sequence[Broker], log: ControllerLog
) -> None:
    """Note that brokers are shutting down.

    One that cannot be noted is logged: until the next failover it shuts down like all others.
    """
    guard = epoch_guard(context)
    remaining: dict[int, Operation] = {b.broker_id: _creation(b) for b in brokers}
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
            for path in PARENTS:
                await Write([Create(path, exist_ok=True)], guard=guard)
        remaining = {
            broker.broker_id: _creation(broker)
            if answers[broker.broker_id] is not ZkError.NODE_EXISTS
            else _replacement(broker)
            for broker in brokers
            if broker.broker_id in answers
        }
    log.error(
        "Shutting down brokers not noted",
        brokers=list(answers),
        answers=sorted({answer.value for answer in answers.values()}),
    )


def _creation(broker: Broker) -> Create:
    content = encode_shutting_down_broker(broker.epoch)
    return Create(shutting_down_broker(broker.broker_id), content)


def _replacement(broker: Broker) -> SetData:
    content = encode_shutting_down_broker(broker.epoch)
    return SetData(shutting_down_broker(broker.broker_id), content)


async def read(context: ControllerContext, log: ControllerLog) -> list[int]:
    """Registered brokers that are noted in their present life. All other notes are deleted."""
    (children,) = await list_permitted([SHUTTING_DOWN_BROKERS], log)
    noted = sorted(b for child in children or () if (b := paths.broker_id_of(child)) is not None)
    nodes = await read_permitted([shutting_down_broker(broker_id) for broker_id in noted])
    valid: list[int] = []
    for broker_id, node in zip(noted, nodes, strict=True):
        broker = context.cluster.brokers.get(broker_id)
        if node is None or broker is None:
            continue
        try:
            epoch = decode_shutting_down_broker(shutting_down_broker(broker_id), node.data)
        except MalformedZNodeError as error:
            log.error("Malformed note deleted", path=error.path, reason=error.reason)
            continue
        if epoch == broker.epoch:
            valid.append(broker_id)
    await forget(context, [broker_id for broker_id in noted if broker_id not in valid])
    return valid


async def forget(context: ControllerContext, broker_ids: Iterable[int]) -> None:
    """Delete the notes about brokers, if there are any."""
    await Write(
        [Delete(shutting_down_broker(b), missing_ok=True) for b in broker_ids],
        guard=epoch_guard(context),
    )
