"""Changes of configuration: whoever may now be elected uncleanly is."""

from __future__ import annotations

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.configs.config_changes import process_config_change
from regent.controller.state.states import PartitionState
from regent.model.partition import TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from tests.unit.controller.world import World

UNCLEAN = "unclean.leader.election.enable"
DEFAULTS = f"brokers/{paths.DEFAULT_ENTITY}"


def cluster(*topics: str) -> tuple[World, ActiveController]:
    """Topics whose only in-sync replica, on broker 2, is dead; broker 1 could take over."""
    world = World()
    world.start_broker(1)
    for topic in topics:
        world.create_topic(topic, {0: (2, 1)})
        world.set_state(TopicPartition(topic, 0), 2, (2,), leader_epoch=5)
    return world, world.lead()


def configure(world: World, path: str, value: str | None) -> None:
    world.put(path, encode_entity_config({} if value is None else {UNCLEAN: value}))


def online(active: ActiveController) -> list[str]:
    states = active.context.partition_states
    return [tp.topic for tp, state in states.items() if state is PartitionState.ONLINE]


def test_a_topic_that_allows_it_now_is_elected_uncleanly_and_no_other() -> None:
    world, active = cluster("t", "u")
    configure(world, paths.topic_config("t"), "true")
    configure(world, paths.topic_config("u"), "false")
    world.notify_config_change("topics/t")
    world.notify_config_change("topics/u")
    world.run(process_config_change(active))
    assert online(active) == ["t"]
    assert active.context.unclean_leader_elections == 1
    assert world.driver.views == [frozenset({"t", "u"})]


def test_changes_of_a_topic_are_counted_until_it_goes() -> None:
    world, active = cluster("t", "u")
    for _ in range(2):
        world.notify_config_change("topics/t")
        world.run(process_config_change(active))
    assert active.context.config_changes == {"t": 2}
    active.context.remove_topic("t")
    assert active.context.config_changes == {}


def test_a_cluster_that_allows_it_now_elects_everything_that_has_no_other_opinion() -> None:
    world, active = cluster("t", "u")
    configure(world, paths.topic_config("u"), "false")
    configure(world, paths.broker_config(None), "true")
    world.notify_config_change(DEFAULTS)
    world.run(process_config_change(active))
    assert online(active) == ["t"]
    assert active.context.cluster.unclean_leader_election_default
    assert world.driver.views == [frozenset({"t"})]


def test_without_a_dynamic_default_the_settings_hold_again() -> None:
    world, active = cluster("t")
    active.context.cluster.unclean_leader_election_default = True
    configure(world, paths.broker_config(None), None)
    world.notify_config_change(DEFAULTS)
    world.run(process_config_change(active))
    assert not active.context.cluster.unclean_leader_election_default


@pytest.mark.parametrize("entity", ["brokers/1", "users/alice", "clients/c", "topics/unknown"])
def test_other_entities_elect_nobody(entity: str) -> None:
    world, active = cluster("t")
    configure(world, paths.topic_config("t"), "true")
    world.notify_config_change(entity)
    world.run(process_config_change(active))
    assert online(active) == []
    assert world.driver.sent == []
    read = {
        p for e in world.driver.performed if isinstance(e, zk_effects.ReadData) for p in e.paths
    }
    assert paths.broker_config(None) not in read


def test_a_topic_being_deleted_is_not_elected() -> None:
    world, active = cluster("t")
    active.context.queue_topic_for_deletion("t")
    configure(world, paths.topic_config("t"), "true")
    world.notify_config_change("topics/t")
    world.run(process_config_change(active))
    assert online(active) == []


def test_a_notification_is_looked_at_once_and_left_to_the_brokers_to_delete() -> None:
    world, active = cluster("t")
    world.notify_config_change("topics/t")
    world.run(process_config_change(active))
    configure(world, paths.topic_config("t"), "true")
    world.run(process_config_change(active))
    assert online(active) == []
    assert len(world.zookeeper.children(paths.CONFIG_CHANGES)) == 1


def test_when_brokers_have_deleted_the_old_ones_new_ones_are_still_new() -> None:
    world, active = cluster("t")
    world.notify_config_change("topics/other")
    world.run(process_config_change(active))
    (old,) = world.zookeeper.children(paths.CONFIG_CHANGES)
    world.delete(paths.config_change(old))
    world.run(process_config_change(active))
    configure(world, paths.topic_config("t"), "true")
    world.notify_config_change("topics/t")
    world.run(process_config_change(active))
    assert online(active) == ["t"]
