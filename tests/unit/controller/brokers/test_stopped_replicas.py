"""What a broker that shuts down was stopped from following it is not sent again, whatever happens
to the partition: it would fetch, and be in the ISR when it stops (KAFKA-14140)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from regent.admin.commands import Accepted, AlterPartitionReassignments, ElectionType, ElectLeaders
from regent.controller.active_controller import ActiveController
from regent.controller.commands import Command, ControlledShutdown
from regent.controller.state.states import ReplicaState
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import TopicPartition
from tests.unit.controller.world import World, leader_and_isr

TP = TopicPartition("t", 0)
STOPPING = 1


def cluster() -> tuple[World, ActiveController]:
    """Broker 1 shuts down; it has followed broker 3, the preferred leader is broker 2."""
    world = World()
    world.driver.inter_broker_protocol = (2, 6)
    world.start_broker(1, 2, 3, 4)
    world.create_topic("t", {0: (2, 3, 1)})
    world.set_state(TP, 3, (2, 3, 1), leader_epoch=5)
    active = world.lead()
    command(world, active, ControlledShutdown(STOPPING, world.epoch_of(STOPPING)))
    world.driver.take_sent()
    return world, active


def command(world: World, active: ActiveController, *commands: Command) -> None:
    for outcome in world.run(process_commands(active, commands)):
        assert isinstance(outcome, Accepted), outcome


def reassign(world: World, active: ActiveController) -> None:
    command(world, active, AlterPartitionReassignments({TP: (2, 3, 4, 1)}))


def elect(world: World, active: ActiveController) -> None:
    command(world, active, ElectLeaders(ElectionType.PREFERRED, (TP,)))


def lose_follower(world: World, active: ActiveController) -> None:
    world.stop_broker(2, seen_by=active)


@pytest.mark.parametrize("happens", [reassign, elect, lose_follower])
def test_a_new_leader_epoch_does_not_start_it_again(
    happens: Callable[[World, ActiveController], None],
) -> None:
    world, active = cluster()
    before = active.context.cluster.leadership[TP]
    happens(world, active)
    assert active.context.cluster.leadership[TP].leader_epoch > before.leader_epoch
    sent = world.driver.take_sent()
    assert TP in leader_and_isr(sent)[3]
    assert STOPPING not in leader_and_isr(sent)
    assert any(STOPPING in batch.update_metadata_receivers for batch in sent)


def test_one_that_is_in_sync_again_is_informed() -> None:
    """It has fetched once more before it was stopped, and counts for acks=all."""
    world, active = cluster()
    state = active.context.cluster.leadership[TP]
    world.set_state(TP, 3, (2, 3, 1), leader_epoch=state.leader_epoch)
    elect(world, active)
    assert active.context.cluster.leadership[TP].isr == (2, 3, 1)
    assert TP in leader_and_isr(world.driver.take_sent())[STOPPING]


def test_offline_replicas_of_other_brokers_are_informed() -> None:
    """A broker may have mended what was offline: its answer says so."""
    world, active = cluster()
    active.context.set_replica_state(2, TP, ReplicaState.OFFLINE)
    reassign(world, active)
    assert TP in leader_and_isr(world.driver.take_sent())[2]
