"""Replicas whose broker or disk is down do not hold up the deletion of their topic."""

from __future__ import annotations

import pytest

from regent.controller import effects
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.brokers.broker_changes import process_broker_change
from regent.controller.topics import topic_changes
from regent.model.partition import NO_LEADER, LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import (
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaResponse,
)
from regent.protocol.error_codes import INCONSISTENT_TOPIC_ID
from regent.zk_data import paths
from regent.zk_data.stray_replicas import STRAY_REPLICAS, strays_of, strays_on
from tests.unit.controller.world import World, leader_and_isr, stop_replica

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
NOTE = strays_of(3, "t")
STORAGE_ERROR = 56


def cluster(**settings: bool) -> tuple[World, ActiveController]:
    """A topic on brokers 1 and 3, 2 and 3. Broker 3 is down, and the topic is to be deleted."""
    world = World(**settings)
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (1, 3), 1: (2, 3)}, config={"retention.ms": "1"})
    world.set_state(T0, 1, (1, 3), leader_epoch=5)
    world.set_state(T1, 2, (2, 3), leader_epoch=5)
    active = world.fail_over()
    world.stop_broker(3)
    world.run(process_broker_change(active))
    return world, active


def delete(world: World, active: ActiveController) -> None:
    world.mark_for_deletion("t")
    world.run(topic_changes.process_topic_deletion(active))
    answer(world, active, 1, T0)
    answer(world, active, 2, T1)
    world.driver.take_sent()


def answer(
    world: World, active: ActiveController, broker_id: int, *tps: TopicPartition, error: int = 0
) -> None:
    errors = dict.fromkeys(tps, error) if error else {}
    asked = {tp: StopReplicaPartition(-2, delete=True) for tp in tps}
    response = StopReplicaResponse(broker_id, 0, errors, asked)
    world.run(answers.process_stop_replica_responses(active, [response]))


def start_broker_3(world: World, active: ActiveController) -> None:
    world.start_broker(3)
    world.run(process_broker_change(active))


def is_gone(world: World, active: ActiveController) -> bool:
    nodes = (paths.topic("t"), paths.topic_config("t"), paths.delete_topic("t"))
    return not any(map(world.exists, nodes)) and not active.context.cluster.has_topic("t")


class TestDeletion:
    def test_the_topic_goes_and_what_is_left_is_noted(self) -> None:
        world, active = cluster()
        delete(world, active)
        assert is_gone(world, active)
        node = world.zookeeper.get(NOTE)
        assert node is not None
        assert node.data == b'{"version":1,"partitions":[0,1]}'

    def test_a_topic_all_of_whose_brokers_are_down_goes_at_once(self) -> None:
        world, active = cluster()
        world.create_topic("u", {0: (3,)})
        world.run(topic_changes.process_topic_change(active))
        world.mark_for_deletion("u")
        world.run(topic_changes.process_topic_deletion(active))
        assert not world.exists(paths.topic("u"))
        assert world.exists(strays_of(3, "u"))

    def test_a_broker_that_dies_meanwhile_does_not_hold_it_up(self) -> None:
        world, active = cluster()
        start_broker_3(world, active)
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        answer(world, active, 1, T0)
        answer(world, active, 2, T1)
        assert not is_gone(world, active)
        world.stop_broker(3)
        world.run(process_broker_change(active))
        assert is_gone(world, active)
        assert world.exists(NOTE)

    def test_a_failed_disk_does_not_hold_it_up(self) -> None:
        world, active = cluster()
        start_broker_3(world, active)
        active.context.set_replicas_on_offline_dirs(3, [T0])
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        answer(world, active, 1, T0)
        answer(world, active, 2, T1)
        answer(world, active, 3, T1)
        assert is_gone(world, active)
        node = world.zookeeper.get(NOTE)
        assert node is not None
        assert node.data == b'{"version":1,"partitions":[0]}'

    def test_a_live_broker_that_refuses_does_hold_it_up(self) -> None:
        world, active = cluster()
        start_broker_3(world, active)
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        answer(world, active, 1, T0)
        answer(world, active, 2, T1)
        answer(world, active, 3, T0, T1, error=STORAGE_ERROR)
        assert world.exists(paths.topic("t"))
        assert not world.exists(NOTE)

    def test_a_failover_does_not_wait_either(self) -> None:
        world, _ = cluster()
        world.mark_for_deletion("t")
        active = world.fail_over()
        answer(world, active, 1, T0)
        answer(world, active, 2, T1)
        assert is_gone(world, active)
        assert world.exists(NOTE)

    def test_what_an_earlier_deletion_has_left_is_kept(self) -> None:
        world, active = cluster()
        world.put(NOTE, b'{"version":1,"partitions":[1,7]}')
        delete(world, active)
        node = world.zookeeper.get(NOTE)
        assert node is not None
        assert node.data == b'{"version":1,"partitions":[0,1,7]}'

    def test_a_topic_whose_replicas_cannot_be_noted_stays(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        world.driver.before = lambda effect: (
            world.put(NOTE, b"[]")  # somebody writes it between reading and writing
            if isinstance(effect, effects.Write) and NOTE in str(effect.operations)
            else None
        )
        answer(world, active, 1, T0)
        answer(world, active, 2, T1)
        assert world.exists(paths.topic("t"))
        assert world.exists(paths.delete_topic("t"))
        world.driver.before = lambda _: None
        world.run(active.deletions.resume())
        assert is_gone(world, active)

    def test_it_waits_where_the_settings_say_so(self) -> None:
        world, active = cluster(deletion_waits_for_brokers=True)
        delete(world, active)
        assert world.exists(paths.topic("t"))
        assert not world.exists(STRAY_REPLICAS)


class TestReturn:
    def test_the_broker_deletes_what_was_left_before_it_learns_of_any_leader(self) -> None:
        world, active = cluster()
        delete(world, active)
        start_broker_3(world, active)
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True), (3, T1, -1, True)]
        asked = next(i for i, sent in enumerate(world.driver.sent) if sent.stop_replica)
        assert leader_and_isr(world.driver.sent[:asked]) == {}

    def test_the_note_goes_when_the_broker_has_confirmed_everything(self) -> None:
        world, active = cluster()
        delete(world, active)
        start_broker_3(world, active)
        answer(world, active, 3, T0)
        assert world.exists(NOTE)
        answer(world, active, 3, T1)
        assert not world.exists(NOTE)

    @pytest.mark.parametrize("bounce", [False, True])
    def test_what_the_broker_could_not_delete_is_asked_for_at_its_next_start(
        self, *, bounce: bool
    ) -> None:
        world, active = cluster()
        delete(world, active)
        start_broker_3(world, active)
        if not bounce:
            answer(world, active, 3, T0, T1, error=STORAGE_ERROR)
        world.driver.take_sent()
        world.bounce_broker(3)
        world.run(process_broker_change(active))
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True), (3, T1, -1, True)]

    def test_a_broker_that_came_back_under_another_controller_is_asked_at_the_failover(
        self,
    ) -> None:
        world, active = cluster()
        delete(world, active)
        world.start_broker(3)
        active = world.fail_over()
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True), (3, T1, -1, True)]
        answer(world, active, 3, T0, T1)
        assert not world.exists(NOTE)

    def test_a_malformed_note_is_left_alone(self) -> None:
        world, active = cluster()
        world.put(NOTE, b'{"partitions":["x"]}')
        start_broker_3(world, active)
        assert [s for s in stop_replica(world.driver.sent) if s[3]] == []
        assert world.exists(NOTE)
        assert len(world.log.errors("Malformed note")) == 1


class TestATopicOfThatNameAgain:
    def created_again(self, isr: tuple[int, ...]) -> tuple[World, ActiveController]:
        """Partition 0 is assigned to broker 3 again, which is down, partition 1 is not."""
        world, active = cluster()
        delete(world, active)
        world.create_topic("t", {0: (1, 3), 1: (2,)})
        world.set_state(T0, 1, isr)
        world.set_state(T1, 2, (2,))
        world.run(topic_changes.process_topic_change(active))
        world.driver.take_sent()
        return world, active

    def test_what_a_broker_outside_the_isr_has_is_of_the_former_topic(self) -> None:
        world, active = self.created_again(isr=(1,))
        start_broker_3(world, active)
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True), (3, T1, -1, True)]
        assert leader_and_isr(world.driver.sent)[3] == {T0: False}

    def test_what_a_member_of_the_isr_has_is_left_alone(self) -> None:
        world, active = self.created_again(isr=(1,))
        only_in_sync = LeaderAndIsr(NO_LEADER, 9, (3,), 1, 9)
        active.context.cluster.set_leadership({T0: only_in_sync})
        start_broker_3(world, active)
        assert stop_replica(world.driver.sent) == [(3, T1, -1, True)]

    def back_under_another_controller(self) -> tuple[World, ActiveController]:
        """Broker 3 has started before the failover: who knows what it was sent."""
        world, _ = self.created_again(isr=(1,))
        world.start_broker(3)
        active = world.fail_over()
        assert [s for s in stop_replica(world.driver.sent) if s[3]] == [(3, T1, -1, True)]
        world.driver.take_sent()
        return world, active

    def obey(self, world: World, active: ActiveController, error: int | None) -> None:
        errors = {} if error is None else {T0: error}
        response = LeaderAndIsrResponse(3, 0, errors, {T0: False})
        world.run(answers.process_leader_and_isr_response(active, response))

    @pytest.mark.parametrize("obeys_first", [False, True])
    def test_at_a_failover_what_a_live_broker_hosts_is_left_alone_if_it_obeys(
        self, *, obeys_first: bool
    ) -> None:
        world, active = self.back_under_another_controller()
        if obeys_first:
            self.obey(world, active, None)
        answer(world, active, 3, T1)
        assert world.exists(NOTE) is not obeys_first
        if not obeys_first:
            self.obey(world, active, None)
        assert not world.exists(NOTE)
        assert stop_replica(world.driver.sent) == []

    def test_what_it_holds_of_a_topic_with_another_id_is_deleted_and_made_anew(self) -> None:
        world, active = self.back_under_another_controller()
        answer(world, active, 3, T1)
        self.obey(world, active, INCONSISTENT_TOPIC_ID)
        deletion, creation = world.driver.sent
        assert stop_replica([deletion]) == [(3, T0, -1, True)]
        assert leader_and_isr([creation]) == {3: {T0: True}}
        assert world.exists(NOTE)
        answer(world, active, 3, T0)
        assert not world.exists(NOTE)

    def test_a_member_of_the_isr_keeps_what_it_holds_whatever_it_says(self) -> None:
        world, active = self.back_under_another_controller()
        in_sync = LeaderAndIsr(1, 9, (1, 3), 1, 9)
        active.context.cluster.set_leadership({T0: in_sync})
        self.obey(world, active, INCONSISTENT_TOPIC_ID)
        assert stop_replica(world.driver.sent) == []
        assert world.exists(NOTE)

    def test_a_note_that_has_become_void_is_dropped(self) -> None:
        world, active = self.created_again(isr=(1,))
        world.put(NOTE, b'{"version":1,"partitions":[0]}')
        only_in_sync = LeaderAndIsr(NO_LEADER, 9, (3,), 1, 9)
        active.context.cluster.set_leadership({T0: only_in_sync})
        start_broker_3(world, active)
        assert world.zookeeper.children(strays_on(3)) == ()

    def test_one_that_is_being_deleted_goes_its_own_way(self) -> None:
        world, active = self.created_again(isr=(1,))
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        world.driver.take_sent()
        start_broker_3(world, active)
        assert world.exists(NOTE)
