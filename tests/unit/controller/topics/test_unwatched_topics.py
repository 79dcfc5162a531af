"""Watches on topics that a take-over had from the standby's copy."""

from __future__ import annotations

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.event_merging import EventQueue
from regent.controller.events import BrokerChange, TopicsUnwatched
from regent.controller.topics import unwatched_topics
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.operations import WatchedEvent, WatchedEventType
from tests.unit.controller.term.test_initial_state import copy_of
from tests.unit.controller.world import World

TOPICS = ("a", "b", "c", "d", "e")


def changed(topic: str) -> WatchedEvent:
    return WatchedEvent(WatchedEventType.NODE_DATA_CHANGED, paths.topic(topic))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Five topics of two partitions, of which two are a part."""
    monkeypatch.setattr(unwatched_topics, "PARTITIONS_AT_A_TIME", 4)
    world = World()
    world.start_broker(1, 2)
    for topic in TOPICS:
        world.create_topic(topic, {0: (1, 2), 1: (2, 1)})
    world.driver.standby = lambda: copy_of(world)
    return world


def taken_over(world: World) -> ActiveController:
    """After a failover from a copy, which has given the topics their ids before."""
    world.fail_over()
    active = world.fail_over()
    world.driver.performed.clear()
    world.driver.enqueued.clear()
    return active


def next_part(world: World, active: ActiveController) -> list[zk_effects.Effect[object]]:
    """The effects of the next event, which must not wait for the one after it."""
    world.driver.performed.clear()
    world.driver.enqueued.clear()
    world.run(unwatched_topics.process_topics_unwatched(active))
    return list(world.driver.performed)


def topics_read(performed: list[zk_effects.Effect[object]]) -> list[list[str]]:
    return [
        [str(paths.topic_of(path)) for path in each.paths]
        for each in performed
        if isinstance(each, zk_effects.ReadData)
    ]


def test_each_event_reads_a_part_and_asks_for_the_next(world: World) -> None:
    active = taken_over(world)
    parts = []
    for expected in ([TopicsUnwatched()], [TopicsUnwatched()], []):
        parts += topics_read(next_part(world, active))
        assert world.driver.enqueued == expected
    assert parts == [["a", "b"], ["c", "d"], ["e"]]
    world.driver.client.take_events()
    for topic in TOPICS:
        world.create_topic(topic, {0: (1, 2), 1: (2, 1), 2: (1,)})
    events = world.driver.client.take_events()
    assert all(changed(topic) in events for topic in TOPICS)


def test_what_has_come_meanwhile_is_processed_before_the_next_part(world: World) -> None:
    active = taken_over(world)
    queue = EventQueue()
    queue.put(BrokerChange(), now=0)
    next_part(world, active)
    for event in world.driver.enqueued:
        queue.put(event, now=0)
    assert queue.kinds() == ["BrokerChange", "TopicsUnwatched"]


def test_only_what_has_changed_since_the_copy_is_processed(world: World) -> None:
    active = taken_over(world)
    world.create_topic("b", {0: (1, 2), 1: (2, 1), 2: (2,)})
    read = topics_read(next_part(world, active))
    assert read[0] == ["a", "b"]
    assert all(topics == ["b"] for topics in read[1:])
    grown = active.context.cluster.partitions_of("b")[TopicPartition("b", 2)]
    assert grown == ReplicaAssignment((2,))
    assert active.context.cluster.leadership[TopicPartition("b", 2)].leader == 2


def test_a_topic_that_is_gone_meanwhile_is_left_to_the_list_of_topics(world: World) -> None:
    active = taken_over(world)
    world.delete(paths.topic("a"))
    next_part(world, active)
    listed = WatchedEvent(WatchedEventType.NODE_CHILDREN_CHANGED, paths.BROKER_TOPICS)
    assert listed in world.driver.client.take_events()
