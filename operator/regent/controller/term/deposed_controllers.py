"""Brokers whose own controllers were deposed by Regent, and have not been restarted since.

Kafka's controller keeps the requests that it was collecting when it lost ``/controller``. If its
broker is elected again in the same life, the state machines fail at once ("Controller to broker
state change requests batch is not empty"), and the cluster has a controller that moves nothing.
Whether it was collecting any is not known from outside, so every broker that was deposed is to be
restarted before a broker leads again. That is said at the moment when nobody of ours leads any
more, and by ``regent status`` all the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import broker_notes
from regent.controller.state.context import ControllerContext
from regent.model.cluster import Broker
from regent.model.log import StructuredLog
from regent.zk_data.broker_notes import DEPOSED


async def remember(active: ActiveController) -> None:
    """Note whom this election has deposed, and learn whom earlier ones have.

    To be called when the live brokers are known. A node in ``/controller`` that another session
    owns than the broker's registration was left by a process that has ended.
    """
    context, log = active.context, active.log
    brokers = context.cluster.brokers
    known = await broker_notes.read(context, DEPOSED, log)
    broker = _deposed_broker(context)
    if broker is not None and broker.broker_id not in known:
        await broker_notes.remember(context, DEPOSED, [broker], log)
        known.append(broker.broker_id)
    context.deposed_controllers = {b: brokers[b].epoch for b in sorted(known)}


def _deposed_broker(context: ControllerContext) -> Broker | None:
    """The live broker whose controller this election has deposed, if it was one."""
    deposed = context.term.deposed
    broker = None if deposed is None else context.cluster.brokers.get(deposed.controller_id)
    if deposed is None or broker is None or broker.session_id != deposed.session_id:
        return None
    return broker


def not_restarted(context: ControllerContext) -> tuple[int, ...]:
    """Brokers whose controllers were deposed, and that are still in the same life."""
    brokers = context.cluster.brokers
    return tuple(
        broker_id
        for broker_id, epoch in context.deposed_controllers.items()
        if broker_id in brokers and brokers[broker_id].epoch == epoch
    )


def name_at_hand_back(brokers: Sequence[int], log: StructuredLog) -> None:
    """Say which brokers have to be restarted, now that a broker is about to be elected."""
    if brokers:
        log.warning(
            "Restart brokers before one of them is elected: their controllers were deposed",
            brokers=list(brokers),
        )
