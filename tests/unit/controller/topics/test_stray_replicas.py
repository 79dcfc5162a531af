"""Replicas whose broker or disk is down do not hold up the deletion of their topic."""

from __future__ import annotations

import pytest

from regent.controller import effects
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.brokers.broker_changes import process_broker_change
from regent.controller.partitions.isr_changes import process_isr_change_notification
from regent.controller.topics import stray_replica_notes, topic_changes
from regent.model.errors import UnexpectedZooKeeperError
from regent.model.partition import NO_LEADER, LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaResponse,
)
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED, INCONSISTENT_TOPIC_ID
from regent.zk_data import paths
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from regent.zk_data.stray_replicas import STRAY_REPLICAS, strays_of, strays_on
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.world import World, leader_and_isr, stop_replica

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
NOTE = strays_of(3, "t")
STORAGE_ERROR = 56
UNKNOWN_SERVER_ERROR = -1


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


def asked_for_log_dirs(world: World) -> list[int]:
    """The brokers that were asked for their log directories since the last call."""
    return [broker_id for sent in world.driver.take_sent() for broker_id in sent.describe_log_dirs]


def describe_log_dirs(
    world: World, active: ActiveController, *, offline: bool = False, error: int = 0
) -> None:
    """Broker 3 answers the question for its log directories, which it has been asked."""
    assert asked_for_log_dirs(world) == [3]
    log_dirs = {} if error else {"/data-0": 0, "/data-1": STORAGE_ERROR if offline else 0}
    response = DescribeLogDirsResponse(3, error, log_dirs)
    world.run(answers.process_describe_log_dirs_response(active, response))


def start_broker_3(world: World, active: ActiveController) -> None:
    world.start_broker(3)
    world.run(process_broker_change(active))


def deny(world: World, *closed: str) -> None:
    """ZooKeeper refuses every request that reads one of these nodes or the list of its children."""

    def hook(effect: effects.Effect[object]) -> None:
        if isinstance(effect, effects.ReadData | effects.ReadChildren):
            for path in effect.paths:
                if path in closed:
                    raise UnexpectedZooKeeperError("NOAUTH", path)

    world.driver.before = hook


def deletions(world: World) -> list[tuple[int, TopicPartition]]:
    """The replicas whose deletion was asked for."""
    return [(sent[0], sent[1]) for sent in stop_replica(world.driver.sent) if sent[3]]


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
        delete(world, active)
        assert not is_gone(world, active)
        world.stop_broker(3)
        world.run(process_broker_change(active))
        assert is_gone(world, active)
        assert world.exists(NOTE)

    def test_a_failed_disk_does_not_hold_it_up(self) -> None:
        world, active = cluster()
        start_broker_3(world, active)
        active.context.set_replicas_on_offline_dirs(3, [T0])
        delete(world, active)
        answer(world, active, 3, T1)
        assert is_gone(world, active)
        node = world.zookeeper.get(NOTE)
        assert node is not None
        assert node.data == b'{"version":1,"partitions":[0]}'

    def test_a_live_broker_that_refuses_does_hold_it_up(self) -> None:
        world, active = cluster()
        start_broker_3(world, active)
        delete(world, active)
        answer(world, active, 3, T0, T1, error=UNKNOWN_SERVER_ERROR)
        assert world.exists(paths.topic("t"))
        assert not world.exists(NOTE)

    def test_a_disk_that_is_found_to_have_failed_does_not(self) -> None:
        world, active = cluster()
        start_broker_3(world, active)
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        answer(world, active, 3, T0, error=STORAGE_ERROR)
        answer(world, active, 3, T1)
        answer(world, active, 1, T0)
        answer(world, active, 2, T1)
        assert is_gone(world, active)
        node = world.zookeeper.get(NOTE)
        assert node is not None
        assert node.data == b'{"version":1,"partitions":[0]}'

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

    def test_the_note_goes_when_the_broker_has_confirmed_everything_with_all_its_disks(
        self,
    ) -> None:
        world, active = cluster()
        delete(world, active)
        start_broker_3(world, active)
        answer(world, active, 3, T0)
        assert asked_for_log_dirs(world) == []
        answer(world, active, 3, T1)
        assert world.exists(NOTE)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    @pytest.mark.parametrize(
        ("offline", "error"), [(True, 0), (False, CLUSTER_AUTHORIZATION_FAILED)]
    )
    def test_the_note_stays_while_a_disk_may_be_offline_until_the_next_start(
        self, *, offline: bool, error: int
    ) -> None:
        world, active = cluster()
        delete(world, active)
        start_broker_3(world, active)
        answer(world, active, 3, T0, T1)
        describe_log_dirs(world, active, offline=offline, error=error)
        assert world.exists(NOTE)
        (warning,) = (r for r in world.log.records if r.message.startswith("Notes about stray"))
        assert warning.fields["offline_log_dirs"] == (["/data-1"] if offline else [])
        world.bounce_broker(3)
        world.run(process_broker_change(active))
        assert deletions(world) == [(3, T0), (3, T1)]
        answer(world, active, 3, T0, T1)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_what_is_noted_between_the_question_and_its_answer_is_not_forgotten(self) -> None:
        world, active = cluster()
        delete(world, active)
        start_broker_3(world, active)
        answer(world, active, 3, T0, T1)
        again = TopicPartition("t", 7)
        world.run(stray_replica_notes.remember(active.context, {3: [again]}, world.log))
        describe_log_dirs(world, active)
        assert world.exists(NOTE)
        answer(world, active, 3, again)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_an_answer_of_a_former_life_of_the_broker_says_nothing(self) -> None:
        world, active = cluster()
        delete(world, active)
        start_broker_3(world, active)
        answer(world, active, 3, T0, T1)
        assert asked_for_log_dirs(world) == [3]
        epoch = active.context.cluster.brokers[3].epoch
        world.bounce_broker(3)
        world.run(process_broker_change(active))
        response = DescribeLogDirsResponse(3, 0, {"/data-0": 0}, broker_epoch=epoch)
        world.run(answers.process_describe_log_dirs_response(active, response))
        assert world.exists(NOTE)

    def test_brokers_without_notes_are_not_asked_for_their_log_directories(self) -> None:
        world, active = cluster()
        start_broker_3(world, active)
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        for broker_id, tps in {1: [T0], 2: [T1], 3: [T0, T1]}.items():
            answer(world, active, broker_id, *tps)
        assert is_gone(world, active)
        assert asked_for_log_dirs(world) == []

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
        describe_log_dirs(world, active)
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
        world.set_state(T0, NO_LEADER, (3,), leader_epoch=9)
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
        if not obeys_first:
            assert world.driver.sent == []
            self.obey(world, active, None)
        assert stop_replica(world.driver.sent) == []
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_what_it_holds_of_a_topic_with_another_id_is_deleted_and_made_anew(self) -> None:
        world, active = self.back_under_another_controller()
        answer(world, active, 3, T1)
        self.obey(world, active, INCONSISTENT_TOPIC_ID)
        deletion, creation = world.driver.sent
        assert stop_replica([deletion]) == [(3, T0, -1, True)]
        assert leader_and_isr([creation]) == {3: {T0: True}}
        assert world.exists(NOTE)
        answer(world, active, 3, T0)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_what_is_moved_away_before_the_broker_could_say_needs_no_saying(self) -> None:
        world, active = self.back_under_another_controller()
        answer(world, active, 3, T1)
        world.run(stray_replica_notes.remember(active.context, {3: [T0]}, world.log))
        assert asked_for_log_dirs(world) == []
        answer(world, active, 3, T0)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_a_member_of_the_isr_keeps_what_it_holds_whatever_it_says(self) -> None:
        world, active = self.back_under_another_controller()
        in_sync = LeaderAndIsr(1, 9, (1, 3), 1, 9)
        active.context.cluster.set_leadership({T0: in_sync})
        self.obey(world, active, INCONSISTENT_TOPIC_ID)
        assert stop_replica(world.driver.sent) == []
        assert world.exists(NOTE)

    def test_once_it_has_left_the_isr_what_it_has_refused_to_host_is_deleted(self) -> None:
        """A leader takes a follower out of the ISR that does not fetch."""
        world, _ = self.created_again(isr=(1,))
        world.set_state(T0, 1, (1, 3), leader_epoch=9)
        world.start_broker(3)
        active = world.fail_over()
        world.driver.take_sent()
        self.obey(world, active, INCONSISTENT_TOPIC_ID)
        assert stop_replica(world.driver.sent) == []
        world.set_state(T0, 1, (1,), leader_epoch=9)
        world.put(
            paths.isr_change_notification("isr_change_0000000001"),
            encode_isr_change_notification([T0]),
        )
        world.run(process_isr_change_notification(active))
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True)]
        assert leader_and_isr(world.driver.sent) == {3: {T0: True}}

    def test_at_a_failover_a_place_in_the_isr_does_not_say_what_a_broker_holds(self) -> None:
        """It may be in the first ISR, and have died before it was sent the deletion."""
        world, _ = self.created_again(isr=(1,))
        world.set_state(T0, 1, (1, 3), leader_epoch=9)
        world.start_broker(3)
        active = world.fail_over()
        answer(world, active, 3, T1)
        assert world.exists(NOTE)
        world.driver.take_sent()
        self.obey(world, active, None)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_what_it_has_deleted_it_need_not_be_asked_about(self) -> None:
        """The replica leaves before the broker has been sent its leadership."""
        world, active = self.back_under_another_controller()
        answer(world, active, 3, T1)
        assert world.exists(NOTE)
        answer(world, active, 3, T0)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_a_confirmed_deletion_leaves_no_doubt_about_what_it_holds(self) -> None:
        """A replica leaves before its broker has answered, or was even sent, a LeaderAndIsr."""
        world = World()
        world.start_broker(1, 3)
        world.create_topic("t", {0: (1, 3)})
        world.set_state(T0, 1, (1,), leader_epoch=5)
        world.put(NOTE, b'{"version":1,"partitions":[0]}')
        world.put(paths.REASSIGN_PARTITIONS, encode_reassign_partitions({T0: (1,)}))
        active = world.fail_over()
        assert deletions(world) == [(3, T0)]
        answer(world, active, 3, T0)
        describe_log_dirs(world, active)
        assert not world.exists(NOTE)

    def test_a_note_that_has_become_void_is_dropped(self) -> None:
        world, active = self.created_again(isr=(1,))
        world.put(NOTE, b'{"version":1,"partitions":[0]}')
        world.set_state(T0, NO_LEADER, (3,))
        start_broker_3(world, active)
        assert world.zookeeper.children(strays_on(3)) == ()

    def test_one_that_is_being_deleted_goes_its_own_way(self) -> None:
        world, active = self.created_again(isr=(1,))
        world.mark_for_deletion("t")
        world.run(topic_changes.process_topic_deletion(active))
        world.driver.take_sent()
        start_broker_3(world, active)
        assert world.exists(NOTE)


class TestANoteThatHasOutlivedItsReplica:
    """Partition 0 was created again and hosted by broker 3 since: another controller led meanwhile,
    which knows nothing of notes."""

    def hosted_again(self, isr: tuple[int, ...] = (1,)) -> tuple[World, ActiveController]:
        world, active = cluster()
        delete(world, active)
        world.create_topic("t", {0: (1, 3), 1: (2,)})
        world.set_state(T0, 1, isr, leader_epoch=7)
        world.set_state(T1, 2, (2,))
        active = world.fail_over()
        world.driver.take_sent()
        return world, active

    def test_what_may_be_all_that_is_left_is_not_deleted(self) -> None:
        world, active = self.hosted_again()
        world.stop_broker(1)
        world.run(process_broker_change(active))
        start_broker_3(world, active)
        assert deletions(world) == [(3, T1)]
        answer(world, active, 3, T1)
        assert world.exists(NOTE)

    def test_the_isr_that_counts_is_the_one_in_zookeeper(self) -> None:
        world, active = self.hosted_again()
        # Its session had expired, it fetched on, and the leader took it back.
        world.set_state(T0, 1, (1, 3), leader_epoch=7)
        start_broker_3(world, active)
        assert deletions(world) == [(3, T1)]

    def test_a_state_that_cannot_be_read_says_nothing_about_the_isr(self) -> None:
        world, active = self.hosted_again()
        world.put(paths.partition_state(T0), b"?")
        start_broker_3(world, active)
        assert deletions(world) == [(3, T1)]
        assert world.exists(NOTE)

    @pytest.mark.parametrize(
        ("content", "deleted"),
        [
            (b"?", []),
            (b'{"version":1,"partitions":{"0":[1,"3"],"1":[2]}}', [(3, T1)]),
        ],
    )
    @pytest.mark.parametrize("fails_over", [False, True])
    def test_a_topic_that_cannot_be_read_is_not_gone(
        self, content: bytes, deleted: list[tuple[int, TopicPartition]], *, fails_over: bool
    ) -> None:
        world, active = self.hosted_again()
        world.put(paths.topic("t"), content)
        if fails_over:
            world.start_broker(3)
            world.fail_over()
        else:
            active = world.fail_over()
            start_broker_3(world, active)
        assert deletions(world) == deleted
        assert world.exists(NOTE)

    def test_a_failover_deletes_what_is_left_before_it_makes_a_first_leader(self) -> None:
        """Else a broker would be in the first ISR with the records of the former topic."""
        world, active = cluster()
        delete(world, active)
        world.create_topic("t", {0: (1, 3)})
        world.start_broker(3)
        world.fail_over()
        sent = world.driver.sent
        asked = next(i for i, requests in enumerate(sent) if requests.stop_replica)
        assert stop_replica([sent[asked]]) == [(3, T0, -1, True), (3, T1, -1, True)]
        assert T0 not in leader_and_isr(sent[: asked + 1]).get(3, {})
        assert leader_and_isr(sent)[3] == {T0: True}

    def test_a_topic_that_nobody_has_led_yet_holds_nothing(self) -> None:
        world, active = cluster()
        delete(world, active)
        world.create_topic("t", {0: (3,)})
        active = world.fail_over()
        world.driver.take_sent()
        start_broker_3(world, active)
        assert deletions(world) == [(3, T0), (3, T1)]


class TestNodesThatMayNotBeRead:
    @pytest.mark.parametrize("closed", [STRAY_REPLICAS, strays_on(3), NOTE])
    def test_notes_cost_neither_a_failover_nor_the_start_of_a_broker(self, closed: str) -> None:
        world, active = cluster()
        world.put(NOTE, b'{"version":1,"partitions":[0]}')
        deny(world, closed)
        start_broker_3(world, active)
        world.fail_over()
        assert world.exists(NOTE)

    def test_a_note_that_cannot_be_completed_keeps_its_topic(self) -> None:
        world, active = cluster()
        world.put(NOTE, b'{"version":1,"partitions":[7]}')
        deny(world, NOTE)
        delete(world, active)
        assert world.exists(paths.delete_topic("t"))
        node = world.zookeeper.get(NOTE)
        assert node is not None
        assert node.data == b'{"version":1,"partitions":[7]}'
        assert world.log.errors("Stray replicas not noted")
        assert "Replicas are deleted when their broker is back" not in [
            record.message for record in world.log.records
        ]

    def test_a_name_that_no_topic_has_is_kept_from_the_broker(self) -> None:
        world, active = cluster()
        for name in ("x" * 250, "x" * 40_000):
            world.put(strays_of(3, name), b'{"version":1,"partitions":[0]}')
        start_broker_3(world, active)
        assert deletions(world) == []
        assert len(world.log.errors("Malformed note")) == 2
