"""Effects of the controller core that concern ZooKeeper, performed by an in-memory client."""

from __future__ import annotations

from typing import Any

from regent.simulation.zookeeper import InMemoryClient
from regent.zk_data.effects import Exists, Multi, ReadChildren, ReadData, Write

ZooKeeperEffect = ReadData | ReadChildren | Exists | Multi | Write


def ask_zookeeper(client: InMemoryClient, effect: ZooKeeperEffect) -> Any:
    """The result of an effect. Raises what the ZooKeeper port documents."""
    match effect:
        case ReadData():
            return effect.result(client.get_data(effect.paths, watch=effect.watch))
        case ReadChildren():
            return client.get_children(effect.paths, watch=effect.watch)
        case Exists():
            return client.exists(effect.paths, watch=effect.watch)
        case Multi():
            return client.multi(effect.operations)
        case Write():
            return client.write(effect.operations, guard=effect.guard, divides=effect.divides)
