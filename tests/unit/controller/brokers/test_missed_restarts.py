"""Brokers stop and start again while nobody leads; the next controller treats them as bounced."""

from __future__ import annotations

import pytest

from regent.controller import giving_way
from regent.controller.brokers import missed_restarts
from regent.controller.effects import GiveWay
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.model.partition import NO_LEADER, TopicPartition
from tests.unit.controller.predecessor import cluster, left_by
from tests.unit.controller.world import T0, World, leader_and_isr

RESTARTED = "Brokers had registered anew while nobody led: others lead, or new leader epochs begin"


def restart(world: World, *broker_ids: int) -> World:
    for broker_id in broker_ids:
        world.bounce_broker(broker_id)
    return world


@pytest.mark.parametrize("leader", [1, 2])
def test_one_that_has_not_restarted_leads(leader: int) -> None:
    world = restart(cluster((1, 2, 3), leader, (1, 2, 3)), leader)
    others = tuple(b for b in (1, 2, 3) if b != leader)
    assert left_by(world) == (others[0], others, 6)


def test_a_follower_that_has_restarted_leaves_the_isr() -> None:
    assert left_by(restart(cluster((1, 2, 3), 1, (1, 2, 3)), 2)) == (1, (1, 3), 6)


def test_with_a_dead_leader_one_that_has_not_restarted_leads() -> None:
    world = restart(cluster((1, 2, 3), 1, (1, 2, 3)), 2)
    world.stop_broker(1)
    assert left_by(world)[:2] == (3, (3,))


def test_a_follower_that_has_restarted_leads_where_nobody_else_is_live() -> None:
    world = restart(cluster((1, 2), 1, (1, 2)), 2)
    world.stop_broker(1)
    assert left_by(world)[:2] == (2, (2,))


def test_a_leader_that_has_restarted_leads_on_where_nobody_else_is_in_sync() -> None:
    """Under a new leader epoch: its follower may know it by a former address."""
    assert left_by(restart(cluster((1, 2), 1, (1,)), 1)) == (1, (1,), 6)


def test_a_member_of_the_isr_that_is_not_assigned_does_not_count() -> None:
    assert left_by(restart(cluster((1, 2), 1, (1, 3)), 1))[:2] == (1, (1,))


@pytest.mark.parametrize(
    ("replicas", "isr"), [((1, 2), (1, 2)), ((1, 2), (1,)), ((1,), (1,)), ((2, 1), (1, 2))]
)
def test_where_all_replicas_have_restarted_nothing_changes(
    replicas: tuple[int, ...], isr: tuple[int, ...]
) -> None:
    """As after a start of the whole cluster."""
    world = restart(cluster(replicas, 1, isr), 1, 2)
    assert left_by(world) == (1, isr, 5)
    assert not world.log.warnings(RESTARTED)


def test_who_restarted_before_the_state_was_written_was_seen() -> None:
    world = restart(cluster((1, 2), 1, (1, 2)), 1, 2)
    world.set_state(T0, 2, (2, 1), leader_epoch=7)
    assert left_by(world) == (2, (2, 1), 7)


def test_a_topic_that_is_to_be_deleted_is_left_to_the_deletion() -> None:
    world = restart(cluster((1, 2), 1, (1, 2)), 1)
    world.mark_for_deletion("t")
    world.fail_over()
    assert not world.log.warnings(RESTARTED)


def test_the_trail_says_that_the_broker_had_bounced() -> None:
    world = restart(cluster((1, 2, 3), 1, (1, 2, 3)), 1)
    active = world.fail_over()
    (change,) = active.context.trail.partitions[T0].changes
    assert change.kind is ChangeKind.ELECTED_OFFLINE
    assert change.cause.kind is CauseKind.BROKER_BOUNCED
    (warned,) = world.log.warnings(RESTARTED)
    assert warned["brokers"] == [1]
    assert warned["partitions"] == 1


def test_a_look_at_all_partitions_gives_way_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """States may stay older than registrations for ever."""
    world = World()
    world.start_broker(1, 2, 3)
    world.create_led_topic("u", dict.fromkeys(range(100), (1, 2)))
    active = restart(world, 1, 2).fail_over()
    monkeypatch.setattr(giving_way, "PART", 10)
    monkeypatch.setattr(missed_restarts, "PART", 10)
    world.driver.performed.clear()
    just_after = active.context.cluster.brokers[3].epoch + 1
    mzxids = {TopicPartition("u", n): just_after for n in range(100)}
    world.run(missed_restarts.treat_as_bounced(active, mzxids))
    assert world.driver.performed == [GiveWay()] * 20


def test_nobody_is_sent_a_leader_that_has_restarted() -> None:
    """Its followers would cut off what it may have lost."""
    world = restart(cluster((1, 2), 1, (1, 2)), 1)
    world.fail_over()
    announced = [batch.partitions[T0] for batch in world.driver.sent if T0 in batch.partitions]
    assert {state.leader_and_isr.leader for state in announced} == {2}
    assert leader_and_isr(world.driver.sent).keys() == {1, 2}


def test_a_partition_without_a_leader_gets_one_that_has_not_restarted() -> None:
    world = restart(cluster((1, 2), NO_LEADER, (1, 2)), 1)
    assert left_by(world)[:2] == (2, (2,))


def test_a_registration_that_was_only_rewritten_is_no_restart() -> None:
    world = cluster((1, 2), 1, (1, 2))
    world.start_broker(1, port=9999)
    assert left_by(world) == (1, (1, 2), 5)


def test_a_state_that_cannot_be_read_hides_no_restart_elsewhere() -> None:
    world = cluster((1, 2), 1, (1, 2))
    world.create_topic("u", {0: (1, 2)})
    world.put("/brokers/topics/u/partitions/0/state", b"garbage")
    restart(world, 1)
    assert left_by(world)[:2] == (2, (2,))


def test_a_topic_whose_deletion_was_completed_meanwhile_does_not_matter() -> None:
    world = cluster((1, 2), 1, (1, 2))
    active = world.fail_over()
    gone = TopicPartition("gone", 0)
    world.run(missed_restarts.treat_as_bounced(active, {gone: 0, T0: 1_000_000}))
    assert not world.log.warnings(RESTARTED)
