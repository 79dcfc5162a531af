"""Brokers that are shutting down: for how long, across failovers, and what others do with them."""

from __future__ import annotations

from regent.admin.commands import Accepted
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.brokers.abandoned_shutdowns import (
    GIVEN_UP_AFTER_MS,
    process_controlled_shutdown_overdue,
)
from regent.controller.brokers.log_dir_events import process_log_dir_event_notification
from regent.controller.commands import ControlledShutdown, ControlledShutdownResult
from regent.controller.effects import SendRequests
from regent.controller.partitions.isr_changes import process_isr_change_notification
from regent.controller.state.causes import CauseKind
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import UpdateMetadataResponse
from regent.protocol.error_codes import UNKNOWN_SERVER_ERROR
from regent.zk_data import paths
from regent.zk_data.broker_notes import SHUTTING_DOWN, encode_broker_note
from regent.zk_data.operations import Create
from tests.support.broker_znodes import (
    encode_isr_change_notification,
    encode_log_dir_event,
    isr_change_notification_prefix,
    log_dir_event_notification_prefix,
)
from tests.unit.controller.world import T0, T1, World, leader_and_isr, stop_replica

OVERDUE = "shutdown of broker 1"


def cluster() -> tuple[World, ActiveController]:
    """Broker 1 leads T0 and follows T1."""
    world = World()
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2), 1: (2, 1, 3)})
    return world, world.lead()


def shut_down(world: World, active: ActiveController, *broker_ids: int) -> None:
    commands = [ControlledShutdown(b, world.epoch_of(b)) for b in broker_ids]
    for outcome in world.run(process_commands(active, commands)):
        assert isinstance(outcome, Accepted)
        assert isinstance(outcome.result, ControlledShutdownResult)
        assert outcome.result.error_code == 0
    world.driver.take_sent()


def noted(world: World) -> list[str]:
    return sorted(world.zookeeper.children("/regent/shutting_down_brokers"))


def overdue(world: World, active: ActiveController) -> None:
    """The timer that was armed at the last request of broker 1 fires."""
    timer = world.driver.timers.pop(OVERDUE)
    assert timer.after_ms == GIVEN_UP_AFTER_MS
    world.run(process_controlled_shutdown_overdue(active, timer.event))


def answer(
    world: World, active: ActiveController, broker_id: int = 1, *, error_code: int = 0
) -> None:
    response = UpdateMetadataResponse(
        broker_id, error_code, active.context.term.epoch, world.epoch_of(broker_id)
    )
    world.run(answers.process_update_metadata_response(active, response))


class TestFailover:
    def test_a_broker_is_noted_with_its_epoch_before_anything_is_changed(self) -> None:
        world, active = cluster()
        shut_down(world, active, 1)
        node = world.node(SHUTTING_DOWN.path(1))
        assert node.data == encode_broker_note(world.epoch_of(1))
        state = world.node(paths.partition_state(T0))
        assert node.czxid < state.mzxid

    def test_a_successor_goes_on_where_the_predecessor_was_cut_short(self) -> None:
        world, _ = cluster()
        note = encode_broker_note(world.epoch_of(1))
        world.put(SHUTTING_DOWN.path(1), note)
        active = world.lead()
        assert active.context.shutting_down_broker_ids == {1}
        assert active.context.live_broker_ids == (2, 3)
        assert world.state(T0) == LeaderAndIsr(2, 6, (2,), 2, 1)
        assert world.state(T1) == LeaderAndIsr(2, 6, (2, 3), 2, 1)
        assert active.context.trail.partitions[T0].changes[-1].cause.kind is (
            CauseKind.CONTROLLED_SHUTDOWN
        )

    def test_what_the_broker_has_left_is_not_started_again(self) -> None:
        world, before = cluster()
        shut_down(world, before, 1)
        world.set_state(T1, 1, (1, 2, 3), leader_epoch=7)  # another controller led meanwhile
        active = world.fail_over()
        sent = world.driver.take_sent()
        states = active.context.replica_states_on(1)
        assert states == {T0: ReplicaState.OFFLINE, T1: ReplicaState.OFFLINE}
        assert world.state(T1) == LeaderAndIsr(2, 8, (2, 3), 2, 3)
        assert T0 not in leader_and_isr(sent)[1]
        assert (1, T1, -1, False) in stop_replica(sent)

    def test_notes_about_brokers_that_are_gone_or_restarted_are_deleted(self) -> None:
        world, _ = cluster()
        world.put(SHUTTING_DOWN.path(1), encode_broker_note(world.epoch_of(1) - 1))
        world.put(SHUTTING_DOWN.path(2), b"{")
        world.put(SHUTTING_DOWN.path(9), encode_broker_note(5))
        active = world.lead()
        assert not active.context.shutting_down_broker_ids
        assert noted(world) == []
        assert world.state(T0) == LeaderAndIsr(1, 5, (1, 2), 0, 0)


class TestTheEnd:
    def test_it_is_forgotten_with_its_registration(self) -> None:
        world, active = cluster()
        shut_down(world, active, 1)
        before = world.state(T0), world.state(T1)
        world.stop_broker(1, seen_by=active)
        assert not active.context.shutting_down_broker_ids
        assert noted(world) == []
        assert (world.state(T0), world.state(T1)) == before  # nothing is left to be changed

    def test_a_bounced_broker_is_not_taken_for_the_one_that_was_stopping(self) -> None:
        world, active = cluster()
        shut_down(world, active, 1)
        world.bounce_broker(1, seen_by=active)
        assert not active.context.shutting_down_broker_ids
        assert noted(world) == []
        assert active.context.is_broker_online(1)
        assert set(leader_and_isr(world.driver.take_sent())[1]) == {T0, T1}
        overdue(world, active)
        assert world.driver.sent == []

    def test_a_broker_that_answers_long_after_its_last_request_has_given_it_up(self) -> None:
        world, active = cluster()
        shut_down(world, active, 1)
        answer(world, active)  # in time: it may have two more requests
        assert active.context.shutting_down_broker_ids == {1}
        overdue(world, active)
        (probe,) = world.driver.take_sent()
        assert probe.update_metadata_receivers == (1,)
        assert not probe.partitions
        answer(world, active, 2)
        answer(world, active, error_code=UNKNOWN_SERVER_ERROR)
        assert active.context.shutting_down_broker_ids == {1}
        answer(world, active)
        assert not active.context.shutting_down_broker_ids
        assert noted(world) == []

    def test_one_that_gave_it_up_follows_again_under_new_epochs(self) -> None:
        """Brokers ignore a LeaderAndIsr with an epoch that they know."""
        world, active = cluster()
        shut_down(world, active, 1)
        overdue(world, active)
        world.driver.take_sent()
        answer(world, active)
        assert world.state(T0) == LeaderAndIsr(2, 7, (2,), 1, 2)
        assert world.state(T1) == LeaderAndIsr(2, 7, (2, 3), 1, 2)
        received = leader_and_isr(world.driver.sent)
        assert set(received[1]) == set(received[2]) == {T0, T1}
        states = active.context.replica_states_on(1)
        assert states == {T0: ReplicaState.ONLINE, T1: ReplicaState.ONLINE}
        change = active.context.trail.partitions[T0].changes[-1]
        assert change.cause.kind is CauseKind.SHUTDOWN_GIVEN_UP

    def test_the_note_of_one_that_gave_it_up_goes_last(self) -> None:
        """A successor that does not find the note does not raise the epochs."""
        world, active = cluster()
        shut_down(world, active, 1)
        overdue(world, active)
        noted_at_sending: list[list[str]] = []
        world.driver.before = lambda effect: (
            noted_at_sending.append(noted(world)) if isinstance(effect, SendRequests) else None
        )
        answer(world, active)
        assert set(leader_and_isr(world.driver.sent)[1]) == {T0, T1}
        assert [each for each in noted_at_sending if each != ["1"]] == []
        assert noted(world) == []

    def test_what_waited_for_it_gets_its_leader(self) -> None:
        world, active = cluster()
        shut_down(world, active, 1)
        world.create_topic("u", {0: (1,)}, seen_by=active)
        created = TopicPartition("u", 0)
        assert active.context.partition_state(created) is PartitionState.NEW
        overdue(world, active)
        answer(world, active)
        assert world.state(created) == LeaderAndIsr(1, 0, (1,), 1, 0)


class TestMeanwhile:
    def test_it_leads_what_nobody_else_in_sync_can(self) -> None:
        world, active = cluster()
        shut_down(world, active, 1)
        world.set_state(T0, 2, (2, 1), leader_epoch=6)  # it was taken into the ISR again
        world.stop_broker(2, seen_by=active)
        assert world.led(T0) == (1, (1,))
        assert active.context.partition_state(T0) is PartitionState.ONLINE
        assert T0 in leader_and_isr(world.driver.sent)[1]

    def test_a_replica_that_comes_into_the_isr_again_leaves_it_again(self) -> None:
        world, active = cluster()
        shut_down(world, active, 1)
        world.set_state(T1, 2, (2, 3, 1), leader_epoch=6)
        notify(world, T1)
        world.run(process_isr_change_notification(active))
        state = world.state_of(T1)
        assert (state.leader, state.leader_epoch, state.isr) == (2, 7, (2, 3))

    def test_a_failed_log_directory_of_it_is_asked_about_as_far_as_it_is_in_sync(self) -> None:
        world, active = cluster()
        world.set_state(T0, 1, (1,), leader_epoch=5)
        shut_down(world, active, 1)
        event = encode_log_dir_event(1)
        world.outsider.multi([Create(log_dir_event_notification_prefix(), event, sequential=True)])
        world.run(process_log_dir_event_notification(active))
        assert leader_and_isr(world.driver.sent) == {1: {T0: False}}


def notify(world: World, tp: TopicPartition) -> None:
    content = encode_isr_change_notification([tp])
    world.outsider.multi([Create(isr_change_notification_prefix(), content, sequential=True)])
