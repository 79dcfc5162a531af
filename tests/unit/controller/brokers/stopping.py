"""What tests of brokers that stop share."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.zk_data import paths
from tests.unit.controller.world import World


def fail_over(world: World) -> ActiveController:
    """Become the controller; what that has sent, done and logged is forgotten."""
    active = world.fail_over()
    world.forget()
    world.log.records.clear()
    return active


def epoch_of(world: World, broker_id: int) -> int:
    """Epoch of a broker as its registration has it."""
    node = world.node(paths.broker_id(broker_id))
    return node.czxid
