"""Replicas whose broker or disk is down do not hold up the deletion of their topic."""

from __future__ import annotations

import pytest

from regent.controller.brokers import answers
from regent.controller.topics import stray_replica_notes
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
)
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.stray_replicas import STRAY_REPLICAS, strays_on
from tests.unit.controller.closed_client import Right, take_rights
from tests.unit.controller.topics.deleting import (
    NOTE,
    STORAGE_ERROR,
    answer,
    asked_for_log_dirs,
    cluster,
    delete,
    delete_after_a_restart,
    describe_log_dirs,
    is_gone,
)
from tests.unit.controller.world import T0, T1, leader_and_isr, stop_replica


class TestDeletion:
    def test_the_topic_goes_and_what_is_left_is_noted(self) -> None:
        world, active = cluster()
        delete(world, active)
        assert is_gone(world, active)
        assert world.node(NOTE).data == b'{"version":1,"partitions":[0,1]}'

    def test_a_broker_that_dies_meanwhile_does_not_hold_it_up(self) -> None:
        world, active = cluster()
        world.start_broker(3, seen_by=active)
        delete(world, active)
        assert not is_gone(world, active)
        world.stop_broker(3, seen_by=active)
        assert is_gone(world, active)
        assert world.exists(NOTE)

    def test_a_failed_disk_does_not_hold_it_up(self) -> None:
        world, active = cluster()
        world.start_broker(3, seen_by=active)
        active.context.set_replicas_on_offline_dirs(3, [T0])
        delete(world, active)
        answer(world, active, 3, T1)
        assert is_gone(world, active)
        assert world.node(NOTE).data == b'{"version":1,"partitions":[0]}'

    def test_a_topic_whose_replicas_cannot_be_noted_stays(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t", seen_by=active)
        world.driver.before = lambda effect: (
            world.put(NOTE, b"[]")  # somebody writes it between reading and writing
            if isinstance(effect, zk_effects.Write) and NOTE in str(effect.operations)
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
        world.start_broker(3, seen_by=active)
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True), (3, T1, -1, True)]
        asked = next(i for i, sent in enumerate(world.driver.sent) if sent.stop_replica)
        assert leader_and_isr(world.driver.sent[:asked]) == {}

    def test_the_note_goes_when_the_broker_has_confirmed_everything_with_all_its_disks(
        self,
    ) -> None:
        world, active = cluster()
        delete(world, active)
        world.start_broker(3, seen_by=active)
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
        world.start_broker(3, seen_by=active)
        answer(world, active, 3, T0, T1)
        describe_log_dirs(world, active, offline=offline, error=error)
        assert world.exists(NOTE)
        (warning,) = (r for r in world.log.records if r.message.startswith("Notes about stray"))
        assert warning.fields["offline_log_dirs"] == (["/data-1"] if offline else [])
        delete_after_a_restart(world, active)

    def test_what_is_noted_between_the_question_and_its_answer_is_not_forgotten(self) -> None:
        world, active = cluster()
        delete(world, active)
        world.start_broker(3, seen_by=active)
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
        world.start_broker(3, seen_by=active)
        answer(world, active, 3, T0, T1)
        assert asked_for_log_dirs(world) == [3]
        epoch = active.context.cluster.brokers[3].epoch
        world.bounce_broker(3, seen_by=active)
        response = DescribeLogDirsResponse(3, 0, {"/data-0": 0}, broker_epoch=epoch)
        world.run(answers.process_describe_log_dirs_response(active, response))
        assert world.exists(NOTE)

    @pytest.mark.parametrize("bounce", [False, True])
    def test_what_the_broker_could_not_delete_is_asked_for_at_its_next_start(
        self, *, bounce: bool
    ) -> None:
        world, active = cluster()
        delete(world, active)
        world.start_broker(3, seen_by=active)
        if not bounce:
            answer(world, active, 3, T0, T1, error=STORAGE_ERROR)
        world.driver.take_sent()
        world.bounce_broker(3, seen_by=active)
        assert stop_replica(world.driver.sent) == [(3, T0, -1, True), (3, T1, -1, True)]

    def test_a_malformed_note_is_left_alone(self) -> None:
        world, active = cluster()
        world.put(NOTE, b'{"partitions":["x"]}')
        world.start_broker(3, seen_by=active)
        assert [s for s in stop_replica(world.driver.sent) if s[3]] == []
        assert world.exists(NOTE)
        assert len(world.log.errors("Malformed notes skipped")) == 1


class TestNodesThatMayNotBeRead:
    @pytest.mark.parametrize("closed", [STRAY_REPLICAS, strays_on(3), NOTE])
    def test_notes_cost_neither_a_failover_nor_the_start_of_a_broker(self, closed: str) -> None:
        world, active = cluster()
        world.put(NOTE, b'{"version":1,"partitions":[0]}')
        take_rights(world, (closed, Right.READ))
        world.start_broker(3, seen_by=active)
        world.fail_over()
        assert world.exists(NOTE)

    def test_a_note_that_cannot_be_completed_keeps_its_topic(self) -> None:
        world, active = cluster()
        world.put(NOTE, b'{"version":1,"partitions":[7]}')
        take_rights(world, (NOTE, Right.READ))
        delete(world, active)
        assert world.exists(paths.delete_topic("t"))
        assert world.node(NOTE).data == b'{"version":1,"partitions":[7]}'
        assert world.log.errors("Stray replicas not noted")
        assert "Replicas are deleted when their broker is back" not in [
            record.message for record in world.log.records
        ]
