"""Leader epochs at the end of 32 bits, which somebody has edited."""

from __future__ import annotations

import json

from regent.controller.state.states import PartitionState
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.decoding import INT32_MAX
from tests.unit.controller.world import World

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def stored(world: World, tp: TopicPartition) -> dict[str, object]:
    node = world.zookeeper.get(paths.partition_state(tp))
    assert node is not None
    state: dict[str, object] = json.loads(node.data)
    return state


def test_a_leader_epoch_that_no_request_can_carry_is_not_written() -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2), 1: (1, 2)})
    for tp, leader_epoch in ((T0, INT32_MAX - 1), (T1, 5)):
        world.set_state(tp, 1, (1, 2), leader_epoch=leader_epoch)
    controller = world.active_controller()
    world.stop_broker(1)
    world.deliver(controller)
    assert stored(world, T0)["leader_epoch"] == INT32_MAX
    world.start_broker(1)
    world.deliver(controller)
    world.driver.take_sent()

    world.stop_broker(2)
    world.deliver(controller)

    assert stored(world, T0)["leader_epoch"] == INT32_MAX
    assert controller.active is not None
    assert controller.active.context.partition_state(T0) is PartitionState.OFFLINE
    assert stored(world, T1) | {"leader": -1, "leader_epoch": 7} == stored(world, T1)
    assert paths.partition_state(T0) in str(world.log.errors("Malformed partition states skipped"))
    sent = [state for each in world.driver.take_sent() for state in each.partitions.values()]
    assert max(state.leader_and_isr.leader_epoch for state in sent) <= INT32_MAX
