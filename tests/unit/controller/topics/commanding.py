"""Commands about topics, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping

from regent.admin.commands import Outcome, Rejected
from regent.controller.active_controller import ActiveController
from regent.controller.commands import Command
from regent.controller.topics.topic_commands import process_commands
from regent.model.errors import ZooKeeperUnavailableError
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from tests.unit.controller.world import World

LOST = ZooKeeperUnavailableError("the connection broke")


def submit(world: World, active: ActiveController, *commands: Command) -> tuple[Outcome, ...]:
    return world.run(process_commands(active, commands))


def refusal(world: World, active: ActiveController, command: Command) -> Rejected:
    """Return the refusal of a command, which must not have written anything."""
    tree = world.zookeeper.dump()
    outcome = rejected(world, active, command)
    assert world.zookeeper.dump() == tree
    return outcome


def rejected(world: World, active: ActiveController, command: Command) -> Rejected:
    (outcome,) = submit(world, active, command)
    assert isinstance(outcome, Rejected)
    assert outcome.message
    return outcome


def config_of(world: World, topic: str = "t") -> Mapping[str, str] | None:
    path = paths.topic_config(topic)
    node = world.zookeeper.get(path)
    return None if node is None else decode_entity_config(path, node.data)
