"""State znodes that were deleted and created again: the partition epochs that brokers know stay
below those that they are sent."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.controller.partitions.isr_changes import read_and_announce
from regent.controller.state.states import PartitionState
from regent.controller.transitions import partition_epochs
from regent.controller.transitions.partition_epochs import LEFT_BEHIND, NOT_WRITABLE, SET_BACK
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, SetData, Written, ZkError
from regent.zk_data.topics import encode_partition_state
from tests.unit.controller.closed_client import Right, take_rights
from tests.unit.controller.driving import NEWEST, once
from tests.unit.controller.world import T0, T1, World, active_of, leader_and_isr

KNOWN = 17
"""Partition epoch that the controller and the brokers know."""
LEADERS_WRITE = (2, 6)
"""The last inter.broker.protocol.version under which leaders write ISRs themselves."""
AHEAD = 5
"""By so much leaders may be ahead of that."""


def cluster(
    *, known: int = KNOWN, protocol: tuple[int, int] = NEWEST
) -> tuple[World, KafkaController]:
    """t-0 is led by 1, t-1 by 2, both at leader epoch 5."""
    world = World()
    world.driver.inter_broker_protocol = protocol
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (1, 2, 3), 1: (2, 3)})
    for _ in range(known + 1):
        world.set_state(T0, 1, (1, 2, 3), leader_epoch=5)
        world.set_state(T1, 2, (2, 3), leader_epoch=5)
    controller = world.active_controller()
    world.driver.take_sent()
    return world, controller


def create_again(world: World, *partitions: TopicPartition) -> None:
    """What a tool does that copies znodes."""
    for tp in partitions:
        path = paths.partition_state(tp)
        node = world.node(path)
        results = world.outsider.multi([Delete(path), Create(path, node.data)])
        assert all(isinstance(result, Written) for result in results)


def leadership(controller: KafkaController, tp: TopicPartition) -> LeaderAndIsr:
    return active_of(controller).context.cluster.leadership[tp]


def announced(world: World, tp: TopicPartition) -> list[LeaderAndIsr]:
    return [
        requests.partitions[tp].leader_and_isr
        for requests in world.driver.take_sent()
        if tp in requests.partitions
    ]


def lose(world: World, controller: KafkaController, broker_id: int) -> None:
    world.stop_broker(broker_id)
    world.process(controller, e.BrokerChange())


def test_an_elected_leader_is_told_a_partition_epoch_above_the_known_one() -> None:
    world, controller = cluster()
    create_again(world, T0)
    lose(world, controller, 1)
    state = world.state_of(T0)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 6)
    assert state.partition_epoch > KNOWN
    assert leadership(controller, T0) == state
    sent = announced(world, T0)
    assert sent
    assert all(each.partition_epoch >= state.partition_epoch for each in sent)


def test_a_leader_that_was_ahead_does_not_overwrite_an_election() -> None:
    """Below inter.broker.protocol.version 2.7 it has changed the ISR itself, which is still to be
    reported; and it was only taken for dead."""
    world, controller = cluster(protocol=LEADERS_WRITE)
    for isr in ((1, 2), (1, 2, 3)):
        world.set_state(T0, 1, isr, leader_epoch=5)
    version = world.state_of(T0).partition_epoch
    create_again(world, T0)
    lose(world, controller, 1)
    elected = world.state_of(T0)
    assert elected.leader == 2
    alone = encode_partition_state(LeaderAndIsr(1, 5, (1,), 0, version))
    change = SetData(paths.partition_state(T0), alone, version)
    assert world.outsider.multi([change]) == [ZkError.BAD_VERSION]
    assert world.state_of(T0) == elected


def test_it_is_said_once_which_and_how_many() -> None:
    world, controller = cluster()
    create_again(world, T0, T1)
    lose(world, controller, 1)
    lose(world, controller, 3)
    said = world.log.warnings(SET_BACK)
    assert [entry["partitions"] for entry in said] == [1, 1]
    assert said[0]["examples"] == ["t-0: version 17 was known, 0 was found"]
    create_again(world, T0)
    lose(world, controller, 2)
    assert len(world.log.warnings(SET_BACK)) == 3


def test_a_topic_that_was_created_again_begins_anew() -> None:
    """The event of the list of topics is still to come."""
    world, controller = cluster()
    state = world.state_of(T0)
    world.delete(paths.topic("t"))
    world.create_topic("t", {0: (1, 2, 3), 1: (2, 3)})
    world.set_state(T0, state.leader, state.isr)
    world.run(read_and_announce(active_of(controller), [T0]))
    assert world.state_of(T0).partition_epoch == 0
    assert leadership(controller, T0).partition_epoch == 0
    assert world.log.warnings(SET_BACK) == []


def test_the_state_of_a_later_controller_is_not_written() -> None:
    world, controller = cluster()
    world.delete(paths.partition_state(T0))
    world.set_state(T0, 2, (2, 3), leader_epoch=6, controller_epoch=99)
    world.run(read_and_announce(active_of(controller), [T0]))
    assert world.state_of(T0).partition_epoch == 0


@pytest.mark.parametrize("known", [KNOWN, KNOWN - 1], ids=["alone", "and others are rolled back"])
def test_somebody_who_writes_meanwhile_is_not_overwritten(known: int) -> None:
    world, controller = cluster(known=known)
    create_again(world, T0, T1)
    world.driver.before = once(
        zk_effects.Write, lambda: world.set_state(T0, 1, (1, 2), leader_epoch=5)
    )
    world.run(read_and_announce(active_of(controller), [T0, T1]))
    assert world.state_of(T0) == LeaderAndIsr(1, 5, (1, 2), 0, known + AHEAD)
    assert world.state_of(T1) == LeaderAndIsr(2, 5, (2, 3), 0, known + AHEAD)
    assert leadership(controller, T0) == world.state_of(T0)


def test_one_that_is_too_far_behind_is_named_and_led_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Brokers that are restarted take it."""
    monkeypatch.setattr(partition_epochs, "WRITES_MAX", KNOWN)
    world, controller = cluster()
    create_again(world, T0)
    lose(world, controller, 1)
    state = world.state_of(T0)
    assert (state.leader, state.partition_epoch) == (2, 1)
    (said,) = world.log.errors(LEFT_BEHIND)
    assert said["partitions"] == 1
    assert said["examples"] == ["t-0: version 17 was known, 0 was found"]
    assert active_of(controller).context.partition_state(T0) is PartitionState.ONLINE


def test_one_that_cannot_be_written_is_not_led_until_it_can() -> None:
    world, controller = cluster()
    client = take_rights(world, (paths.partition_state(T0), Right.WRITE))
    create_again(world, T0, T1)
    world.stop_broker(1, 2)
    world.process(controller, e.BrokerChange())
    context = active_of(controller).context
    assert context.partition_state(T0) is PartitionState.OFFLINE
    assert leadership(controller, T0).partition_epoch == KNOWN
    assert world.state_of(T1).leader == 3
    assert world.state_of(T1).partition_epoch > KNOWN
    said = world.log.errors(NOT_WRITABLE)
    assert said[0]["examples"] == [
        "t-0: version 17 was known, 0 was found; ZooKeeper answered NOAUTH for its state znode"
    ]
    client.missing.clear()
    world.process(controller, e.WatchCheck())
    assert context.partition_state(T0) is PartitionState.ONLINE
    assert world.state_of(T0).leader == 3
    assert world.state_of(T0).partition_epoch > KNOWN


@pytest.mark.parametrize("is_there", [True, False], ids=["created again", "deleted"])
def test_leaders_that_write_isrs_themselves_get_a_leader_epoch_by_which_they_can_go_on(
    is_there: bool,
) -> None:
    """They know another version than the state has, and ask nobody: they could change nothing."""
    world, controller = cluster(protocol=LEADERS_WRITE)
    create_again(world, T0)
    if not is_there:
        world.delete(paths.partition_state(T0))
    world.run(read_and_announce(active_of(controller), [T0]))
    assert world.state_of(T0).leader_epoch == 5
    world.driver.take_sent()
    world.process(controller, e.WatchCheck())
    assert world.state_of(T0).leader_epoch == 6
    assert T0 in leader_and_isr(world.driver.take_sent())[1]
    world.process(controller, e.WatchCheck())
    assert world.state_of(T0).leader_epoch == 6


def test_an_isr_change_that_was_deleted_with_its_state_is_not_undone() -> None:
    """Its leader has committed records without the others, which must not be elected."""
    world, controller = cluster(protocol=LEADERS_WRITE)
    world.set_state(T0, 1, (1, 2), leader_epoch=5)
    world.delete(paths.partition_state(T0))
    world.run(read_and_announce(active_of(controller), [T0]))
    assert (world.state_of(T0).leader, world.state_of(T0).isr) == (1, (1,))
    world.process(controller, e.WatchCheck())
    lose(world, controller, 1)
    assert (world.state_of(T0).leader, world.state_of(T0).isr) == (-1, (1,))
