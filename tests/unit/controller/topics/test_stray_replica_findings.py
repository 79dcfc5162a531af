"""What a note says of a broker may be out of date: what is deleted is what nobody can lose."""

from __future__ import annotations

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.partitions.isr_changes import process_isr_change_notification
from regent.controller.topics import topic_changes
from regent.model.partition import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.control_requests import (
    LeaderAndIsrResponse,
)
from regent.protocol.error_codes import INCONSISTENT_TOPIC_ID
from regent.zk_data import paths
from regent.zk_data.stray_replicas import strays_of
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.topics.deleting import (
    NOTE,
    answer,
    cluster,
    delete,
    deletions,
    describe_log_dirs,
)
from tests.unit.controller.world import T0, T1, World, leader_and_isr, stop_replica


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
        world.start_broker(3, seen_by=active)
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True), (3, T1, -1, True)]
        assert leader_and_isr(world.driver.sent)[3] == {T0: False}

    def test_what_a_member_of_the_isr_has_is_left_alone(self) -> None:
        world, active = self.created_again(isr=(1,))
        world.set_state(T0, NO_LEADER, (3,), leader_epoch=9)
        world.start_broker(3, seen_by=active)
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

    def test_a_member_of_the_isr_keeps_what_it_holds_whatever_it_says(self) -> None:
        world, active = self.back_under_another_controller()
        in_sync = LeaderAndIsr(1, 9, (1, 3), 1, 10)  # a leader has changed the ISR
        active.context.cluster.set_leadership({T0: in_sync})
        self.obey(world, active, INCONSISTENT_TOPIC_ID)
        assert stop_replica(world.driver.sent) == []
        assert world.exists(NOTE)

    @pytest.mark.parametrize(
        ("replicas", "partition_epoch"),
        [
            pytest.param((1, 3), 0, id="first state"),
            pytest.param((1, 3), 9, id="no leader has changed the ISR"),
            pytest.param((3,), 10, id="only replica"),
        ],
    )
    def test_a_member_of_the_isr_starts_empty_where_nobody_can_have_records(
        self, replicas: tuple[int, ...], partition_epoch: int
    ) -> None:
        """Else the partition has no leader until somebody removes the files by hand."""
        world, active = self.back_under_another_controller()
        answer(world, active, 3, T1)
        cluster = active.context.cluster
        cluster.set_assignments("t", {T0: ReplicaAssignment(replicas)})
        cluster.set_leadership({T0: LeaderAndIsr(3, 9, replicas, 1, partition_epoch)})
        self.obey(world, active, INCONSISTENT_TOPIC_ID)
        deletion, creation = world.driver.sent
        assert stop_replica([deletion]) == [(3, T0, -1, True)]
        assert leader_and_isr([creation]) == {3: {T0: False}}

    def test_once_it_has_left_the_isr_what_it_has_refused_to_host_is_deleted(self) -> None:
        """A leader takes a follower out of the ISR that does not fetch."""
        world, _ = self.created_again(isr=(1,))
        world.start_broker(3)
        world.set_state(T0, 1, (1, 3), leader_epoch=9)
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

    def test_one_that_is_being_deleted_goes_its_own_way(self) -> None:
        world, active = self.created_again(isr=(1,))
        world.mark_for_deletion("t", seen_by=active)
        world.driver.take_sent()
        world.start_broker(3, seen_by=active)
        assert deletions(world) == [(3, T1)]
        assert world.exists(NOTE)
        world.driver.take_sent()
        answer(world, active, 1, T0)
        answer(world, active, 2, T1)
        assert deletions(world) == [(3, T0)]


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
        world.stop_broker(1, seen_by=active)
        world.start_broker(3, seen_by=active)
        assert deletions(world) == [(3, T1)]
        answer(world, active, 3, T1)
        assert world.exists(NOTE)

    def test_the_isr_that_counts_is_the_one_in_zookeeper(self) -> None:
        world, active = self.hosted_again()
        # Its session had expired, it fetched on, and the leader took it back.
        world.set_state(T0, 1, (1, 3), leader_epoch=7)
        world.start_broker(3, seen_by=active)
        assert deletions(world) == [(3, T1)]

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
            world.start_broker(3, seen_by=active)
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


def test_topics_that_cannot_be_read_are_one_entry_of_the_log() -> None:
    """And what a broker has of them is neither deleted nor forgotten."""
    world, active = cluster()
    topics = [f"broken-{number}" for number in range(30)]
    for topic in topics:
        world.put(strays_of(3, topic), b'{"version":1,"partitions":[0]}')
        world.put(paths.topic(topic), b"[1")
    world.start_broker(3, seen_by=active)
    assert deletions(world) == []
    assert all(world.exists(strays_of(3, topic)) for topic in topics)
    (reported,) = world.log.errors("Malformed topics skipped")
    assert reported["znodes"] == 30
    assert f"{paths.topic(topics[0])}: " in str(reported["examples"])
