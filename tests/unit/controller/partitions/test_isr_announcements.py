"""What others than their leaders learn of ISR changes."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.effects import SendRequests, Write
from regent.controller.events import IsrAnnouncementDue
from regent.controller.partitions.isr_announcements import (
    AFTER_MS,
    TIMER,
    process_isr_announcement_due,
)
from regent.controller.reassignment.new_epochs import announce
from regent.protocol.error_codes import FENCED_LEADER_EPOCH
from tests.unit.controller.partitions.test_alter_partition import (
    EPOCH,
    ask,
    change,
    cluster,
    error_of,
    request,
)
from tests.unit.controller.world import T0, T1, World


def let_time_pass(world: World, active: ActiveController) -> None:
    timer = world.driver.timers.pop(TIMER)
    assert (timer.after_ms, timer.event) == (AFTER_MS, IsrAnnouncementDue())
    world.run(process_isr_announcement_due(active))


def test_the_answer_waits_for_the_write_and_not_for_the_announcement() -> None:
    world, active = cluster()
    world.driver.performed.clear()
    ask(world, active, request(active, change(1)))
    performed = [type(effect) for effect in world.driver.performed]
    assert Write in performed
    assert SendRequests not in performed
    assert world.driver.views == []


def test_a_change_is_announced_to_all_without_leader_and_isr() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(1)))
    let_time_pass(world, active)
    (sent,) = world.driver.sent
    assert sent.partitions[T0].leader_and_isr == world.state(T0)
    assert tuple(sent.partitions) == (T0,)
    assert sent.update_metadata_receivers == (1, 2, 3)
    assert sent.leader_and_isr == {}
    assert world.driver.views == [frozenset({"t"})]


def test_changes_within_a_moment_are_announced_together() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(1)))
    armed = world.driver.timers[TIMER]
    ask(world, active, request(active, change(2, 1, 3, partition=1), broker_id=2))
    assert world.driver.timers[TIMER] is armed
    let_time_pass(world, active)
    (sent,) = world.driver.sent
    assert set(sent.partitions) == {T0, T1}


def test_of_several_changes_of_a_partition_the_last_is_announced() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(1)))
    ask(world, active, request(active, change(1, 2, partition_epoch=1)))
    let_time_pass(world, active)
    (sent,) = world.driver.sent
    assert sent.partitions[T0].leader_and_isr == world.state(T0)


def test_the_next_change_is_announced_in_its_turn() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(1)))
    let_time_pass(world, active)
    world.driver.take_sent()
    ask(world, active, request(active, change(2, 1, 3, partition=1), broker_id=2))
    let_time_pass(world, active)
    (sent,) = world.driver.sent
    assert tuple(sent.partitions) == (T1,)


def test_what_is_refused_is_not_announced() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(4)))
    assert TIMER not in world.driver.timers


def test_what_somebody_else_has_written_is_announced() -> None:
    world, active = cluster()
    world.set_state(T0, 2, (2, 1), leader_epoch=EPOCH + 1)
    assert error_of(ask(world, active, request(active, change(1)))) == FENCED_LEADER_EPOCH
    let_time_pass(world, active)
    (sent,) = world.driver.sent
    assert sent.partitions[T0].leader_and_isr == world.state(T0)


def test_a_leader_epoch_that_follows_is_not_taken_back() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(1)))
    world.run(announce(active, [T0]))
    let_time_pass(world, active)
    assert [sent.partitions[T0].leader_and_isr for sent in world.driver.sent] == [
        world.state(T0),
        world.state(T0),
    ]


def test_a_topic_that_is_gone_by_then_is_left_out() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(1)))
    active.context.remove_topic("t")
    let_time_pass(world, active)
    assert world.driver.sent == []
    assert world.driver.views == []
