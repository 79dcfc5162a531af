"""Effects of the controller core that concern ZooKeeper, performed by an in-memory client."""

from __future__ import annotations

from typing import Any

from regent.controller import effects as fx
from regent.simulation.zookeeper import InMemoryClient

ZooKeeperEffect = fx.ReadData | fx.ReadChildren | fx.Exists | fx.Multi | fx.Write


def ask_zookeeper(client: InMemoryClient, effect: ZooKeeperEffect) -> Any:
    """The result of an effect. Raises what the ZooKeeper port documents."""
    match effect:
        case fx.ReadData():
            return effect.result(client.get_data(effect.paths, watch=effect.watch))
        case fx.ReadChildren():
            return client.get_children(effect.paths, watch=effect.watch)
        case fx.Exists():
            return client.exists(effect.paths, watch=effect.watch)
        case fx.Multi():
            return client.multi(effect.operations)
        case fx.Write():
            return client.write(effect.operations, guard=effect.guard, divides=effect.divides)
