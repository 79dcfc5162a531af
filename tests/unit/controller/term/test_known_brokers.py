"""A registration that cannot be read says nothing new of its broker: in the next term, too."""

from __future__ import annotations

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.zk_data import paths
from tests.unit.controller.world import T0, T1, World, active_of


def led_by_broker_1() -> tuple[World, KafkaController]:
    world = World()
    world.start_broker(1, 2)
    world.create_led_topic("t", {0: (1, 2), 1: (1,)})
    return world, world.active_controller()


def lose_and_win(world: World, controller: KafkaController) -> None:
    """Another process is the controller for a while."""
    world.elect_rival(2)
    world.deliver(controller)
    assert controller.active is None
    world.delete(paths.CONTROLLER)
    world.deliver(controller)
    if controller.active is None:
        world.process(controller, e.Reelect())
    assert controller.active is not None


def leaders(world: World) -> list[tuple[int, tuple[int, ...]]]:
    states = [world.state(tp) for tp in (T0, T1)]
    return [(state.leader, state.isr) for state in states if state is not None]


def test_one_that_was_overwritten_costs_its_broker_no_leader_in_the_next_term() -> None:
    world, controller = led_by_broker_1()
    world.put(paths.broker_id(1), b"{")
    for _ in range(3):
        lose_and_win(world, controller)
        assert leaders(world) == [(1, (1, 2)), (1, (1,))]
    opened = world.driver.channels[-1].opened
    assert [broker.broker_id for broker in opened] == [1, 2]
    assert opened[0].endpoints[0].host == "broker-1"
    world.start_broker(1, port=9093)
    world.deliver(controller)
    assert active_of(controller).context.cluster.brokers[1].endpoints[0].port == 9093


def test_one_of_another_life_is_skipped() -> None:
    """Nobody knows where the broker is to be reached."""
    world, controller = led_by_broker_1()
    world.elect_rival(2)
    world.deliver(controller)
    world.bounce_broker(1)
    world.put(paths.broker_id(1), b"{")
    world.delete(paths.CONTROLLER)
    world.deliver(controller)
    assert list(active_of(controller).context.cluster.brokers) == [2]
    assert leaders(world) == [(2, (2,)), (-1, (1,))]
