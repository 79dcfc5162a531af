"""States that a take-over had from a copy that was wrong."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.causes import CauseKind
from regent.controller.state.states import PartitionState
from regent.model.partition import TopicPartition
from tests.unit.controller.world import T0, T1, World, active_of


@pytest.fixture
def world() -> World:
    world = World()
    world.start_broker(1, 2)
    world.create_led_topic("t", {0: (1, 2), 1: (2, 1)})
    return world


def leading(world: World) -> KafkaController:
    controller = world.active_controller()
    world.forget()
    return controller


def test_they_are_read_and_announced(world: World) -> None:
    controller = leading(world)
    world.set_state(T0, 2, (2, 1), leader_epoch=6)
    world.process(controller, e.UnreportedStates((T0,)))
    context = active_of(controller).context
    assert (context.cluster.leadership[T0].leader, context.partition_state(T0)) == (
        2,
        PartitionState.ONLINE,
    )
    (requests,) = world.driver.sent
    assert tuple(requests.partitions) == (T0,)
    assert requests.update_metadata_receivers == (1, 2)
    assert world.driver.views == [frozenset({"t"})]


def test_a_leader_that_is_not_there_is_replaced(world: World) -> None:
    """Another one seemed to lead when it failed, so nobody was elected."""
    world.start_broker(3)
    controller = leading(world)
    world.stop_broker(3)
    world.deliver(controller)
    world.set_state(T0, 3, (3, 1), leader_epoch=6)
    world.process(controller, e.UnreportedStates((T0, T1)))
    context = active_of(controller).context
    elected = context.cluster.leadership[T0]
    assert (elected.leader, elected.leader_epoch, elected.isr) == (1, 7, (1,))
    assert context.cluster.leadership[T1].leader_epoch == 5
    last = context.trail.partitions[T0].changes[-1]
    assert last.cause.kind is CauseKind.STATE_UNREPORTED


def test_what_is_gone_meanwhile_is_left_out(world: World) -> None:
    controller = leading(world)
    world.process(
        controller, e.UnreportedStates((TopicPartition("gone", 0), TopicPartition("t", 9)))
    )
    assert controller.active is not None
    assert not world.driver.sent
