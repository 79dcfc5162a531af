"""Replicas that brokers have and should not have are reported, and stay where they are."""

from __future__ import annotations

from collections.abc import Mapping

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.brokers.unassigned_replicas import (
    SOON_MS,
    process_unassigned_replica_check,
)
from regent.controller.events import UnassignedReplicaCheck
from regent.controller.view import UnassignedReplica
from regent.model.partition import NO_EPOCH, TopicPartition
from regent.observability.metrics import gauges_of
from regent.protocol.control_requests import DescribeLogDirsResponse
from tests.unit.controller.world import World, stop_replica

TIMER = "unassigned replicas"
MESSAGE = "Replicas that are not assigned to their broker"
HOUR_S = 3_600


def cluster(**settings: object) -> tuple[World, ActiveController]:
    """Brokers 1 and 2 host t-0, broker 3 hosts nothing."""
    world = World(**settings)
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2)})
    return world, world.lead()


def answer(
    world: World,
    active: ActiveController,
    replicas: Mapping[str, Mapping[int, int]] | None,
    *,
    broker_id: int = 3,
    broker_epoch: int = NO_EPOCH,
) -> None:
    response = DescribeLogDirsResponse(
        broker_id, 0, {"/data": 0}, replicas=replicas, broker_epoch=broker_epoch
    )
    world.run(answers.process_describe_log_dirs_response(active, response))


def reported(world: World) -> list[dict[str, object]]:
    return [record.fields for record in world.log.records if record.message == MESSAGE]


def test_brokers_are_asked_soon_after_the_failover_and_then_every_hour() -> None:
    world, active = cluster()
    timer = world.driver.timers.pop(TIMER)
    assert (timer.after_ms, timer.event) == (SOON_MS, UnassignedReplicaCheck())
    world.run(process_unassigned_replica_check(active))
    (requests,) = world.driver.take_sent()
    assert requests.list_replicas == (1, 2, 3)
    assert not requests.partitions
    assert not requests.update_metadata_receivers
    assert world.driver.timers.pop(TIMER).after_ms == HOUR_S * 1_000


def test_what_is_assigned_elsewhere_or_of_no_topic_is_reported_and_not_deleted() -> None:
    world, active = cluster()
    answer(world, active, {"t": {0: 7, 1: 8}, "gone": {4: 9}, "empty": {}})
    assert active.context.unassigned_replicas.sample() == (
        UnassignedReplica("t", 0, broker_id=3, size=7),
        UnassignedReplica("t", 1, broker_id=3, size=8),
        UnassignedReplica("gone", 4, broker_id=3, size=9),
    )
    assert gauges_of(active.context).unassigned_replicas_count == 3
    (fields,) = reported(world)
    assert (fields["broker"], fields["replicas"], fields["size"]) == (3, 3, 24)
    assert world.driver.take_sent() == []


def test_what_is_being_deleted_or_noted_as_to_be_is_not_reported() -> None:
    world, active = cluster()
    world.mark_for_deletion("t", seen_by=active)
    assert stop_replica(world.driver.take_sent())
    active.context.stray_replicas[3] = {"noted": {TopicPartition("noted", 0): NO_EPOCH}}
    active.context.doubtful_replicas[3] = {TopicPartition("doubtful", 0): None}
    answer(world, active, {"t": {0: 7}, "noted": {0: 1}, "doubtful": {0: 1}})
    assert active.context.unassigned_replicas.count == 0


def test_the_same_is_logged_once_and_its_end_too() -> None:
    world, active = cluster()
    answer(world, active, {"gone": {0: 1}})
    answer(world, active, {"gone": {0: 2}})
    answer(world, active, {"gone": {0: 2}, "gone-too": {0: 2}})
    answer(world, active, {})
    assert [fields["replicas"] for fields in reported(world)] == [1, 2, 0]
    assert active.context.unassigned_replicas.count == 0


def test_what_a_former_life_of_a_broker_has_said_is_forgotten() -> None:
    world, active = cluster()
    answer(world, active, {"gone": {0: 1}})
    epoch = active.context.cluster.brokers[3].epoch
    world.bounce_broker(3, seen_by=active)
    assert active.context.unassigned_replicas.count == 0
    answer(world, active, {"gone": {0: 1}}, broker_epoch=epoch)
    assert active.context.unassigned_replicas.count == 0


def test_a_broker_that_starts_again_and_again_puts_the_check_off_for_some_minutes_only() -> None:
    world, active = cluster()
    armed = 1  # after the failover
    while world.driver.timers.pop(TIMER, None) is not None:
        armed += 1
        assert armed * SOON_MS <= 6 * SOON_MS
        world.bounce_broker(3, seen_by=active)
    world.run(process_unassigned_replica_check(active))
    assert world.driver.timers.pop(TIMER).after_ms == HOUR_S * 1_000
    world.bounce_broker(3, seen_by=active)
    assert world.driver.timers[TIMER].after_ms == SOON_MS
