"""Brokers whose controllers Regent has deposed: remembered for one life, named at a hand-back."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.zk_data import paths
from regent.zk_data.broker_notes import DEPOSED, encode_broker_note
from tests.unit.controller.world import World

WARNING = "Restart brokers before one of them is elected: their controllers were deposed"


@pytest.fixture
def world() -> World:
    world = World()
    world.start_broker(1, 2)
    world.elect_broker(1)
    return world


def noted(world: World) -> dict[int, bytes]:
    nodes = {int(c): world.zookeeper.get(DEPOSED.path(int(c))) for c in children(world)}
    return {broker_id: node.data for broker_id, node in nodes.items() if node is not None}


def children(world: World) -> list[str]:
    return sorted(world.zookeeper.children(DEPOSED.parent)) if world.exists(DEPOSED.parent) else []


def life_of(world: World, broker_id: int) -> bytes:
    node = world.node(paths.broker_id(broker_id))
    return encode_broker_note(node.czxid)


def warned(world: World) -> list[object]:
    return [fields["brokers"] for fields in world.log.warnings(WARNING)]


def hand_back(world: World, controller: KafkaController) -> list[object]:
    """Step down for good; the brokers that the log names meanwhile."""
    before = len(warned(world))
    world.process(controller, e.NotEligible())
    return warned(world)[before:]


def test_a_broker_that_was_the_controller_is_noted_and_named_at_the_hand_back(
    world: World,
) -> None:
    controller = world.active_controller()
    assert noted(world) == {1: life_of(world, 1)}
    assert warned(world) == []
    assert hand_back(world, controller) == [[1]]


def test_those_of_earlier_terms_are_known_to_every_later_one(world: World) -> None:
    hand_back(world, world.active_controller())
    world.elect_broker(2)
    controller = world.active_controller()
    assert noted(world) == {1: life_of(world, 1), 2: life_of(world, 2)}
    assert hand_back(world, controller) == [[1, 2]]


def test_notes_about_former_lives_go(world: World) -> None:
    hand_back(world, world.active_controller())
    world.stop_broker(1)
    world.active_controller()
    assert noted(world) == {}


def test_a_node_that_a_former_process_has_left_says_nothing_about_the_broker() -> None:
    """It was killed, and is back before its session has expired."""
    world = World()
    world.start_broker(1, 2)
    former = world.zookeeper.connect()
    world.elect_broker(1, session=former)
    controller = world.active_controller()
    assert noted(world) == {}
    assert hand_back(world, controller) == []


def test_a_replica_of_regent_is_not_noted(world: World) -> None:
    world.elect_rival(1_000_000_777)
    world.active_controller()
    assert noted(world) == {}
