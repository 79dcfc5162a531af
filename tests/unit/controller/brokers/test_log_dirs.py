"""Replicas on failed log directories: notifications of brokers and their answers."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.answers import process_leader_and_isr_response
from regent.controller.brokers.log_dir_events import process_log_dir_event_notification
from regent.controller.events import BrokerChange
from regent.controller.state.states import ReplicaState
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse
from regent.protocol.error_codes import KAFKA_STORAGE_ERROR
from regent.zk_data import paths
from tests.support.broker_znodes import encode_log_dir_event, log_dir_event_notification_prefix
from tests.unit.controller.world import T0, T1, World, leader_and_isr


def cluster() -> tuple[World, ActiveController]:
    """Partitions t-0 on 1, 2 and 3, and t-1 on 2, 3 and 1, at leader epoch 5."""
    world = World()
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2, 3), 1: (2, 3, 1)})
    return world, world.lead()


def answer(
    world: World,
    active: ActiveController,
    broker_id: int,
    errors: dict[TopicPartition, int],
    *accepted: TopicPartition,
    error_code: int = 0,
) -> None:
    partitions = dict.fromkeys([*errors, *accepted], False)
    response = LeaderAndIsrResponse(broker_id, error_code, errors, partitions)
    world.run(process_leader_and_isr_response(active, response))


class TestAnswers:
    def test_a_leader_on_a_failed_dir_is_replaced(self) -> None:
        world, active = cluster()
        answer(world, active, 1, {T0: KAFKA_STORAGE_ERROR}, T1)
        assert world.state(T0) == LeaderAndIsr(2, 6, (2, 3), 1, 1)
        assert world.state(T1) == LeaderAndIsr(2, 5, (2, 3, 1), 0, 0)
        assert active.context.replica_state(1, T0) is ReplicaState.OFFLINE
        assert active.context.replica_state(1, T1) is ReplicaState.ONLINE
        assert world.driver.views == [frozenset({"t"})]

    def test_a_follower_on_a_failed_dir_leaves_the_isr_and_is_shown_as_offline(self) -> None:
        world, active = cluster()
        answer(world, active, 1, {T1: KAFKA_STORAGE_ERROR})
        assert world.state(T1) == LeaderAndIsr(2, 6, (2, 3), 1, 1)
        announced = [r for r in world.driver.sent if T1 in r.partitions]
        assert announced
        assert announced[-1].offline_replicas == {T1: (1,)}

    def test_partitions_that_are_gone_or_moved_away_leave_no_trace(self) -> None:
        """Else a topic of the same name could never have a replica there."""
        world, active = cluster()
        gone = TopicPartition("gone", 0)
        answer(world, active, 1, {gone: KAFKA_STORAGE_ERROR})
        assert active.context.is_replica_online(1, gone)
        assert world.log.errors("Illegal replica transition") == []

    def test_a_stale_broker_epoch_makes_us_look_at_the_brokers(self) -> None:
        world, active = cluster()
        answer(world, active, 1, {}, error_code=77)
        assert world.driver.enqueued == [BrokerChange()]

    def test_an_accepted_partition_is_readable_again(self) -> None:
        world, active = cluster()
        answer(world, active, 1, {T0: KAFKA_STORAGE_ERROR, T1: KAFKA_STORAGE_ERROR})
        world.driver.views.clear()
        answer(world, active, 1, {}, T0)
        assert list(active.context.replicas_on_offline_dirs(1)) == [T1]
        assert world.driver.views == [frozenset({"t"})]


class TestNotifications:
    def notify(self, world: World, *broker_ids: int) -> None:
        for number, broker_id in enumerate(broker_ids):
            path = f"{log_dir_event_notification_prefix()}{number:010d}"
            world.put(path, encode_log_dir_event(broker_id))

    def test_the_broker_is_asked_about_all_its_replicas(self) -> None:
        world, active = cluster()
        self.notify(world, 3, 3)
        world.run(process_log_dir_event_notification(active))
        assert leader_and_isr(world.driver.sent) == {3: {T0: False, T1: False}}
        assert world.zookeeper.children(paths.LOG_DIR_EVENT_NOTIFICATION) == ()

    def test_a_malformed_notification_and_one_of_a_dead_broker_are_dropped(self) -> None:
        world, active = cluster()
        self.notify(world, 9)
        world.put(paths.log_dir_event_notification("log_dir_event_0000000007"), b"?")
        world.run(process_log_dir_event_notification(active))
        assert world.driver.sent == []
        assert world.zookeeper.children(paths.LOG_DIR_EVENT_NOTIFICATION) == ()
        assert len(world.log.errors("Malformed notifications")) == 1

    def test_replicas_that_are_being_deleted_are_not_asked_about(self) -> None:
        world, active = cluster()
        active.context.queue_topic_for_deletion("t")
        world.run(active.deletions.resume())
        world.driver.take_sent()
        self.notify(world, 3)
        world.run(process_log_dir_event_notification(active))
        assert world.driver.sent == []
        assert world.log.errors("Illegal replica transition") == []
