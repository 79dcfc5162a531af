"""The server that a client is connected to lags behind, or was cut off from its leader: what it
answers is older than what others have written."""

from __future__ import annotations

from regent.admin.commands import Accepted, CreatePartitions, DeleteTopic, Rejected
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import Delete
from tests.unit.steering.client_world import ClientWorld

PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1))


def create_again(world: ClientWorld) -> None:
    """Somebody deletes topic t, and creates one of that name on other brokers."""
    for path in (
        *map(paths.partition_state, PARTITIONS),
        *map(paths.topic_partition, PARTITIONS),
        paths.topic_partitions("t"),
        paths.topic("t"),
    ):
        world.admin.multi([Delete(path)])
    world.create_topic("t", (2, 3))


async def test_a_topic_that_was_created_again_is_not_deleted(world: ClientWorld) -> None:
    meant = world.view.topics["t"].czxid
    world.connections.zookeeper.missed = lambda: create_again(world)
    (outcome,) = await world.submit(DeleteTopic("t", czxid=meant))
    assert isinstance(outcome, Rejected)
    assert "another one by now" in outcome.message
    assert world.server.children(paths.DELETE_TOPICS) == ()


async def test_a_topic_that_was_created_again_keeps_its_replicas_when_it_grows(
    world: ClientWorld,
) -> None:
    """The node of the former topic had the same version."""
    world.connections.zookeeper.missed = lambda: create_again(world)
    assert await world.submit(CreatePartitions("t", 3)) == (Accepted(),)
    assert world.topic("t").assignments[0] == ReplicaAssignment((2, 3))


async def test_a_transaction_that_is_refused_is_the_refusal_of_commands_only(
    world: ClientWorld,
) -> None:
    """Who may not read the epoch that is checked still knows the cluster."""
    world.connections.zookeeper.refused = paths.CONTROLLER_EPOCH
    (outcome,) = await world.submit(DeleteTopic("t"))
    assert isinstance(outcome, Rejected)
    assert "give Regent's ZooKeeper user the rights" in outcome.message
    assert world.view.may_act
