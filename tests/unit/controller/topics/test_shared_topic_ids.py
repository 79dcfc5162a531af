"""A topic node that is a copy of another one, with its id: clients would take one for the other."""

from __future__ import annotations

import uuid

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.topics.topic_changes import (
    process_partition_modifications,
    process_topic_change,
)
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.topics import decode_topic
from tests.unit.controller.term.test_initial_state import Standby, copy_of, loaded_from, no_copy
from tests.unit.controller.world import World, leader_and_isr

ID, OTHER = uuid.UUID(int=77), uuid.UUID(int=88)
Z0 = TopicPartition("z", 0)


def original() -> World:
    """Topic z, whose name comes last, on brokers 1 and 2."""
    world = World()
    world.driver.inter_broker_protocol = (3, 9)
    world.start_broker(1, 2)
    world.create_topic("z", {0: (1, 2)}, topic_id=ID)
    world.set_state(Z0, 1, (1, 2), leader_epoch=5)
    return world


def with_copy() -> tuple[World, ActiveController]:
    """Somebody copies the node while we lead."""
    world = original()
    active = world.fail_over()
    world.driver.take_sent()
    world.create_topic("copy", {0: (1, 2)}, topic_id=ID, seen_by=active)
    return world, active


def test_a_copy_is_left_alone_and_named() -> None:
    world, active = with_copy()
    cluster = active.context.cluster
    assert not cluster.has_topic("copy")
    assert "is that of topic z" in cluster.unreadable_topics["copy"]
    assert cluster.topic_name(ID) == "z"
    assert leader_and_isr(world.driver.sent) == {}
    world.run(process_topic_change(active))
    world.run(process_partition_modifications(active, ["copy"]))
    assert "copy" in cluster.unreadable_topics
    assert len(world.log.errors("Malformed topics or partitions of topics skipped")) == 1


def test_a_copy_without_the_id_is_a_topic_of_its_own() -> None:
    world, active = with_copy()
    world.create_topic("copy", {0: (1, 2)})
    world.run(process_partition_modifications(active, ["copy"]))
    cluster = active.context.cluster
    assert cluster.unreadable_topics == {}
    assert cluster.topic_ids["copy"] not in (None, ID)
    assert leader_and_isr(world.driver.sent).keys() == {1, 2}


def test_a_copy_takes_the_place_of_a_topic_whose_node_goes() -> None:
    world, active = with_copy()
    world.delete(paths.topic("z"))
    world.run(process_topic_change(active))
    cluster = active.context.cluster
    assert list(cluster.topics) == ["copy"]
    assert cluster.topic_name(ID) == "copy"
    assert cluster.unreadable_topics == {}


@pytest.mark.parametrize("standby", [copy_of, no_copy])
def test_a_failover_leaves_the_later_one_alone(standby: Standby) -> None:
    world = original()
    world.create_topic("copy", {0: (1, 2)}, topic_id=ID)
    world.driver.standby = lambda: standby(world)
    cluster = world.fail_over().context.cluster
    assert loaded_from(world) == ["ZooKeeper"]
    assert list(cluster.topics) == ["z"]
    assert cluster.topic_name(ID) == "z"
    assert cluster.unreadable_topics.keys() == {"copy"}
    assert cluster.leadership.keys() == {Z0}


def test_a_known_topic_does_not_take_the_id_of_another_one_over() -> None:
    world = original()
    world.create_topic("own", {0: (1, 2)}, topic_id=OTHER)
    active = world.fail_over()
    world.create_topic("own", {0: (1, 2)}, topic_id=ID)
    world.run(process_partition_modifications(active, ["own"]))
    cluster = active.context.cluster
    assert (cluster.topic_ids["own"], cluster.topic_name(ID)) == (OTHER, "z")
    node = world.node(paths.topic("own"))
    assert decode_topic("own", node.data).topic_id == OTHER
