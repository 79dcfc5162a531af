"""Brokers that get no new replicas: they are being emptied, or are about to be.

Kafka has no such thing before KIP-1066, which cordons log directories of KRaft clusters. Here new
replicas are placed by the controller, so it works with every version. A cordon is kept in the
context, for the term: nothing of it can be left behind in ZooKeeper when nobody wants it any more.
"""

from __future__ import annotations

from regent.admin.commands import Accepted, CordonBrokers
from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView


async def cordon_brokers(active: ActiveController, command: CordonBrokers) -> Accepted:
    """Cordon exactly these brokers."""
    before = active.context.cordoned_brokers
    if command.broker_ids != before:
        active.context.cordoned_brokers = command.broker_ids
        active.log.info(
            "Brokers cordoned", brokers=list(command.broker_ids), previously=list(before)
        )
        await PublishView(frozenset())
    return Accepted()
