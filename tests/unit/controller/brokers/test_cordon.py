"""Cordoned brokers: where new replicas go, and how long that holds."""

from __future__ import annotations

from regent.admin.commands import Accepted, CordonBrokers, CreatePartitions, CreateTopic
from regent.controller.active_controller import ActiveController
from regent.controller.commands import Command
from regent.controller.topics.topic_changes import process_topic_change
from regent.controller.topics.topic_commands import process_commands
from regent.model.cluster import Address
from regent.runtime.view_publisher import ViewPublisher
from tests.unit.controller.world import CONTROLLER_ID, World, active_of


def cluster(*brokers: int) -> tuple[World, ActiveController]:
    world = World()
    world.start_broker(*brokers)
    return world, world.fail_over()


def ask(world: World, active: ActiveController, *commands: Command) -> None:
    outcomes = world.run(process_commands(active, commands))
    assert all(isinstance(outcome, Accepted) for outcome in outcomes), outcomes


def hosts(world: World, topic: str) -> set[int]:
    return {b for a in world.topic(topic).assignments.values() for b in a.replicas}


def test_new_topics_and_new_partitions_avoid_cordoned_brokers() -> None:
    world, active = cluster(1, 2, 3, 4)
    ask(world, active, CordonBrokers((2,)), CreateTopic("t", 8, 3))
    world.run(process_topic_change(active))
    assert hosts(world, "t") == {1, 3, 4}
    ask(world, active, CreatePartitions("t", 16))
    assert len(world.topic("t").assignments) == 16
    assert hosts(world, "t") == {1, 3, 4}


def test_a_command_says_which_brokers_are_cordoned_and_no_others_are() -> None:
    world, active = cluster(1, 2)
    ask(world, active, CordonBrokers((1,)), CordonBrokers((2,)), CreateTopic("t", 4, 1))
    assert hosts(world, "t") == {1}
    ask(world, active, CordonBrokers(()), CreateTopic("u", 4, 1))
    assert hosts(world, "u") == {1, 2}


def test_brokers_that_are_all_cordoned_are_used_like_before() -> None:
    world, active = cluster(1, 2)
    ask(world, active, CordonBrokers((1, 2)), CreateTopic("t", 4, 1))
    assert hosts(world, "t") == {1, 2}


def test_replicas_on_the_controller_go_to_cordoned_brokers_last() -> None:
    world = World(served={"PLAINTEXT": Address("regent", 9095)})
    world.start_broker(1, 2, 3)
    controller = world.active_controller()
    active = active_of(controller)
    ask(world, active, CordonBrokers((3,)))
    world.create_topic("t", {0: (CONTROLLER_ID, 1), 1: (CONTROLLER_ID, 1, 2)})
    world.deliver(controller)
    replicas = {p: a.replicas for p, a in world.topic("t").assignments.items()}
    assert replicas == {0: (2, 1), 1: (3, 1, 2)}


def test_the_view_names_cordoned_brokers_and_the_next_term_begins_without() -> None:
    world = World()
    world.start_broker(1)
    controller = world.active_controller()
    publisher = ViewPublisher(controller)
    ask(world, active_of(controller), CordonBrokers((1,)))
    publisher.publish(frozenset())
    assert publisher.view.cordoned == (1,)
    assert world.fail_over().context.cordoned_brokers == ()
