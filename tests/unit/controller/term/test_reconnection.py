"""After a disconnection that the session survived, nothing may have been missed."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.state.states import PartitionState
from regent.controller.term.watches import event_of
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.operations import WatchedEvent
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from tests.unit.controller.processes import led_cluster
from tests.unit.controller.world import CONTROLLER_ID, T0, World, active_of

UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def world() -> World:
    return led_cluster()


def test_whatever_happened_meanwhile_is_found(world: World) -> None:
    controller = world.active_controller()
    world.driver.client.disconnect()
    world.stop_broker(1)
    world.start_broker(3)
    world.create_topic("u", {0: (2,)})
    world.create_topic("t", {0: (1, 2), 1: (2, 3)})
    world.driver.client.reconnect()
    world.driver.client.take_events()
    world.process(controller, e.SessionReconnected())
    context = active_of(controller).context
    assert list(context.cluster.brokers) == [2, 3]
    assert context.cluster.leadership[T0].leader == 2
    assert context.cluster.leadership[TopicPartition("u", 0)].leader == 2
    assert context.cluster.leadership[TopicPartition("t", 1)].leader == 2
    assert context.term.epoch == 1


def test_nobody_is_elected_uncleanly_by_a_default_that_was_switched_off_meanwhile(
    world: World,
) -> None:
    path = paths.broker_config(None)
    world.put(path, encode_entity_config({UNCLEAN: "true"}))
    world.set_state(T0, 1, (1,), leader_epoch=5)
    controller = world.active_controller()
    world.driver.client.disconnect()
    world.put(path, encode_entity_config({UNCLEAN: "false"}))
    world.notify_config_change(f"brokers/{paths.DEFAULT_ENTITY}")
    world.stop_broker(1)
    world.driver.client.reconnect()
    world.process(controller, e.SessionReconnected())
    context = active_of(controller).context
    assert context.partition_state(T0) is PartitionState.OFFLINE
    assert context.cluster.leadership[T0].isr == (1,)
    assert context.unclean_leader_elections == 0
    assert not context.cluster.unclean_leader_election_default


@pytest.mark.parametrize("controller_id", [2, CONTROLLER_ID])
def test_a_successor_elected_meanwhile_is_found(world: World, controller_id: int) -> None:
    controller = world.active_controller()
    world.driver.client.disconnect()
    world.elect_rival(controller_id)
    world.driver.client.reconnect()
    world.process(controller, e.SessionReconnected())
    assert controller.active is None
    assert controller.life.controller_id_seen == controller_id


def test_requested_and_advanced_reassignments_are_found(world: World) -> None:
    world.driver.inter_broker_protocol = (2, 6)
    world.start_broker(3)
    t1 = TopicPartition("t", 1)
    world.create_topic("t", {0: (1, 2), 1: ReplicaAssignment((2, 3, 1), (3,), (1,))})
    world.set_state(t1, 1, (1, 2), leader_epoch=5)
    controller = world.active_controller()
    world.driver.client.disconnect()
    world.put(paths.REASSIGN_PARTITIONS, encode_reassign_partitions({T0: (2, 3)}))
    state = world.state_of(t1)
    world.set_state(
        t1, 1, (1, 2, 3), leader_epoch=state.leader_epoch, controller_epoch=state.controller_epoch
    )
    world.driver.client.reconnect()
    world.driver.client.take_events()
    world.process(controller, e.SessionReconnected())
    assert world.topic("t").assignments == {
        0: ReplicaAssignment((2, 3, 1), (3,), (1,)),
        1: ReplicaAssignment((2, 3)),
    }
    world.driver.client.take_events()
    world.put(paths.REASSIGN_PARTITIONS, b"{")
    world.set_state(T0, 1, (1, 2, 3), leader_epoch=6, controller_epoch=1)
    fired = [w for w in world.driver.client.take_events() if isinstance(w, WatchedEvent)]
    assert set(map(event_of, fired)) - {None} == {
        e.ZkPartitionReassignment(),
        e.PartitionReassignmentIsrChange((T0,)),
    }
