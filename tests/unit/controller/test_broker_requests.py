"""Requests of brokers as events: one answer for each, whatever happens; those that wait are one."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    Asked,
    IsrChange,
)
from regent.controller.event_merging import EventQueue
from regent.protocol.error_codes import NOT_CONTROLLER
from tests.unit.controller.world import World, active_of


def alter_partition(broker_id: int, reply_to: object) -> e.AlterPartitionReceived:
    return e.AlterPartitionReceived((Asked(AlterPartitionRequest(broker_id, 1, ()), reply_to),))


def producer_ids(broker_id: int, reply_to: object) -> e.AllocateProducerIdsReceived:
    request = AllocateProducerIdsRequest(broker_id, 1)
    return e.AllocateProducerIdsReceived((Asked(request, reply_to),))


REFUSALS = {
    e.AlterPartitionReceived: AlterPartitionResponse(NOT_CONTROLLER),
    e.AllocateProducerIdsReceived: AllocateProducerIdsResponse(NOT_CONTROLLER),
}

REQUESTS = [alter_partition(1, "token"), producer_ids(1, "token")]


@pytest.mark.parametrize("event", REQUESTS)
def test_a_process_that_is_not_the_controller_says_so(event: e.AnsweredEvent) -> None:
    world = World()
    world.process(world.controller(), event)
    (answer,) = world.driver.answers
    assert (answer.reply_to, answer.answer) == ("token", REFUSALS[type(event)])


def test_a_controller_that_has_been_replaced_says_so_and_resigns() -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2)})
    controller = world.active_controller()
    epoch = active_of(controller).context.cluster.brokers[1].epoch
    wanted = IsrChange("t", 0, leader_epoch=0, isr=(1,), partition_epoch=0)
    request = AlterPartitionRequest(1, epoch, (wanted,))
    world.elect_rival()
    world.process(controller, e.AlterPartitionReceived((Asked(request, "token"),)))
    (answer,) = world.driver.answers
    assert (answer.reply_to, answer.answer) == ("token", AlterPartitionResponse(NOT_CONTROLLER))
    assert controller.active is None


def test_a_broker_is_answered_in_the_order_of_its_requests() -> None:
    queue = EventQueue()
    queue.put(alter_partition(1, "a"), now=0)
    queue.put(producer_ids(1, "b"), now=0)
    queue.put(alter_partition(1, "c"), now=0)
    queue.put(alter_partition(2, "d"), now=0)
    events = [queue.take().event for _ in range(3)]
    assert [
        [each.reply_to for each in event.asked]
        for event in events
        if isinstance(event, e.AlterPartitionReceived | e.AllocateProducerIdsReceived)
    ] == [["a"], ["b"], ["c", "d"]]
