"""Topics that others create with replicas on the announced controller."""

from __future__ import annotations

import pytest

from regent.model.cluster import Address
from regent.model.partition import ReplicaAssignment
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.driving import once
from tests.unit.controller.world import CONTROLLER_ID, T0, T1, World, leader_and_isr

SERVED = {"PLAINTEXT": Address("regent", 9095)}
ANOTHER_REGENT = 1_000_000_555


def world_of(*brokers: int, served: bool = True) -> World:
    world = World(served=SERVED if served else {})
    world.start_broker(*brokers)
    return world


@pytest.mark.parametrize("phantom", [CONTROLLER_ID, ANOTHER_REGENT])
def test_a_new_topic_is_corrected_before_its_partitions_are_born(phantom: int) -> None:
    world = world_of(1, 2, 3)
    controller = world.active_controller()
    world.create_topic("t", {0: (phantom, 1), 1: (2, phantom)})
    corrected_first: list[bool] = []

    def seen(effect: zk_effects.Effect[object]) -> None:
        if isinstance(effect, zk_effects.Write) and any(
            operation.path == paths.partition_state(T0) for operation in effect.operations
        ):
            replicas = [a.replicas for a in world.topic("t").assignments.values()]
            corrected_first.append(all(phantom not in each for each in replicas))

    world.driver.before = seen
    world.deliver(controller)
    assert corrected_first == [True]
    assert {p: a.replicas for p, a in world.topic("t").assignments.items()} == {
        0: (3, 1),
        1: (2, 1),
    }
    for tp, isr in ((T0, (3, 1)), (T1, (2, 1))):
        assert world.state_of(tp).isr == isr
    receivers = leader_and_isr(world.driver.sent)
    assert T0 in receivers[3]
    assert phantom not in receivers


def test_the_topic_keeps_its_id_and_what_is_added_meanwhile() -> None:
    world = world_of(1, 2)
    controller = world.active_controller()
    world.create_topic("t", {0: (CONTROLLER_ID,)})
    world.driver.before = once(
        zk_effects.Write, lambda: world.create_topic("t", {0: (CONTROLLER_ID,), 1: (2,)})
    )
    world.deliver(controller)
    assert {p: a.replicas for p, a in world.topic("t").assignments.items()} == {0: (1,), 1: (2,)}
    assert world.topic("t").topic_id is not None
    assert world.state(T1) is not None


@pytest.mark.parametrize("phantom", [CONTROLLER_ID, ANOTHER_REGENT])
def test_a_failover_corrects_what_a_predecessor_could_not(phantom: int) -> None:
    world = world_of(1, 2, 3)
    world.create_topic("t", {0: (1, phantom), 1: (phantom, 2)})
    world.set_state(T0, 1, (1,), leader_epoch=4)
    controller = world.active_controller()
    assert controller.active is not None
    stored = world.topic("t").assignments
    assert stored[0] == ReplicaAssignment((1, 3), adding_replicas=(3,))
    assert stored[1] == ReplicaAssignment((3, 2))
    assert leader_and_isr(world.driver.sent)[3][T0]
    assert world.state_of(T1).leader == 3


def test_a_broker_with_an_id_of_that_range_is_a_broker() -> None:
    world = world_of(1, ANOTHER_REGENT)
    world.create_topic("u", {0: (ANOTHER_REGENT, 1)})
    controller = world.active_controller()
    world.stop_broker(ANOTHER_REGENT)
    world.create_topic("t", {0: (1, ANOTHER_REGENT)})
    world.deliver(controller)
    assert world.topic("t").assignments[0].replicas == (1, ANOTHER_REGENT)


def test_without_an_endpoint_nothing_is_changed() -> None:
    world = world_of(1, 2, served=False)
    controller = world.active_controller()
    world.create_topic("t", {0: (1, CONTROLLER_ID)})
    world.deliver(controller)
    assert world.topic("t").assignments[0].replicas == (1, CONTROLLER_ID)


def test_an_announced_controller_has_a_rack_exactly_if_all_brokers_have_one() -> None:
    world = World(served=SERVED)
    world.start_broker(1, rack="b")
    world.start_broker(2, rack="a")
    world.start_broker(3, rack="b")
    controller = world.active_controller()
    announced = world.driver.sent[-1].announced
    assert announced is not None
    assert announced.rack == "b"
    world.start_broker(4)
    world.deliver(controller)
    announced = world.driver.sent[-1].announced
    assert announced is not None
    assert announced.rack is None
