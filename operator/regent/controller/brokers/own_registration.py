"""The controller's own registration, for brokers that look for it in ``/brokers/ids``.

Brokers before Kafka 3.0 that stop read ``/controller`` and then the registration of that id, to
send ControlledShutdown there. So while one of them is in the cluster an ephemeral registration
exists, with every listener of the brokers that is served. It has a mark by which it is left out
wherever brokers are read: a broker's own controller would take it for a broker, so it is deleted
before that controller can be elected.

Brokers 2.4 to 2.7 place the replicas of topics that they create on whatever is registered, newer
ones on what UpdateMetadata lists: see :mod:`regent.controller.topics.assignment_repair`.
"""

from __future__ import annotations

from typing import Final

from regent.cluster.announced_controller import announced_controller
from regent.controller.active_controller import ActiveController
from regent.controller.effects import CurrentTime
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog
from regent.zk_data import paths
from regent.zk_data.brokers import (
    decode_broker,
    encode_controller_registration,
    is_controller_registration,
)
from regent.zk_data.effects import Multi, Write
from regent.zk_data.operations import Create, Delete, Operation, SetData, ZkError, ZNode
from regent.zk_data.permitted_reads import read_permitted

LOOK_IN_METADATA_SINCE: Final = (3, 0)
"""Kafka version from which brokers look the controller up in what UpdateMetadata lists."""


async def settle(active: ActiveController) -> None:
    """Register, change the registration, or delete it, as the brokers need it now."""
    context = active.context
    if not context.term.served:
        return
    wanted = _controller(context) if _is_needed(context) else None
    if wanted is None and not context.is_registered:
        return
    path = paths.broker_id(context.term.controller_id)
    (node,) = await read_permitted([path])
    operation = await _operation(path, node, wanted)
    if wanted is not None:
        context.is_registered = True  # even if the answer to the write is lost
    if operation is not None:
        (result,) = await Write([operation], guard=epoch_guard(context))
        if isinstance(result, ZkError):
            # Another session of ours may have left it: its end is reported as a change of brokers.
            active.log.warning("Own registration not changed", path=path, answer=result.value)
        else:
            active.log.info("Own registration changed", path=path, exists=wanted is not None)
    context.is_registered = wanted is not None


def _is_needed(context: ControllerContext) -> bool:
    """Whether some broker, live or just down, looks the controller up in ``/brokers/ids``."""
    return any(
        facts.has_answered and facts.versions[0] < LOOK_IN_METADATA_SINCE
        for facts in context.broker_facts.all()
    )


def _controller(context: ControllerContext) -> Broker | None:
    """With all listeners that are served: brokers alone look here, clients do not."""
    term = context.term
    return announced_controller(
        term.controller_id,
        context.cluster.brokers,
        term.served,
        addresses=term.listener_addresses,
    )


async def _operation(path: str, node: ZNode | None, wanted: Broker | None) -> Operation | None:
    """What makes the node as it is wanted; None if it is."""
    if node is not None and not is_controller_registration(node):
        # A broker has registered with our id: that is refused elsewhere. Or somebody has made a
        # node that we may not read: it is not ours.
        return None
    if wanted is None:
        return None if node is None else Delete(path, node.version)
    if node is not None and _is_as(node, wanted):
        return None
    content = encode_controller_registration(wanted, await CurrentTime())
    if node is None:
        return Create(path, content, ephemeral=True, exist_ok=True)
    return SetData(path, content, node.version)


def _is_as(node: ZNode, wanted: Broker) -> bool:
    try:
        found = decode_broker(wanted.broker_id, node)
    except MalformedZNodeError:
        return False
    return (found.endpoints, found.rack) == (wanted.endpoints, wanted.rack)


async def deletion(controller_id: int) -> list[Delete]:
    """What deletes the registration of this controller; nothing if there is none."""
    path = paths.broker_id(controller_id)
    (node,) = await read_permitted([path])
    if node is None or not is_controller_registration(node):
        return []
    return [Delete(path, node.version)]


async def withdraw(controller_id: int, log: StructuredLog) -> None:
    """Delete the registration of a controller that another one has deposed.

    It is not fenced: the epoch is the other one's. Nobody else has our id, and a broker that had it
    would not have a registration with the mark.

    Raises:
        ZooKeeperError: It is not known to be gone. It is ephemeral.
    """
    operations = await deletion(controller_id)
    if operations:
        await Multi(operations)
        log.info("Own registration deleted", path=operations[0].path)
