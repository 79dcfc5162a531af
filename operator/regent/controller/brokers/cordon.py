"""Brokers that get no new replicas: they are being emptied, or are about to be.

Kafka has no such thing before KIP-1066, which cordons log directories of KRaft clusters. Here new
replicas are placed by the controller, so it works with every version. A cordon is kept in the
context, for the term: nothing of it can be left behind in ZooKeeper when nobody wants it any more.
"""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.commands import Accepted, CordonBrokers
from regent.controller.effects import PublishView
from regent.controller.topics.replica_assignment import BrokerRack


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


def brokers_for_new_replicas(
    active: ActiveController, *, replication_factor: int
) -> list[BrokerRack]:
    """Live brokers that new partitions are placed on.

    Cordoned ones are among them only where the others are too few for the replication factor: a
    topic that could not be created would cost more than a replica that has to be moved.
    """
    live = live_broker_racks(active)
    cordoned = active.context.cordoned_brokers
    others = [broker for broker in live if broker.broker_id not in cordoned]
    return others if others and len(others) >= replication_factor else live


def live_broker_racks(active: ActiveController) -> list[BrokerRack]:
    """Live brokers, without those that are shutting down."""
    brokers = active.context.cluster.brokers
    return [BrokerRack(b, brokers[b].rack) for b in active.context.live_broker_ids]
