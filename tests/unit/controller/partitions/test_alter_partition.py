"""ISR changes that leaders ask for: the rules in their order, and what follows from a change."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    Asked,
    IsrChange,
    IsrChangeResult,
)
from regent.controller.events import IsrAnnouncementDue
from regent.controller.log import ISR_CHANGES_NOT_WRITTEN, LEADERS_WAIT
from regent.controller.partitions import waiting_leaders
from regent.controller.partitions.alter_partition import (
    process_alter_partition,
    process_isr_changes_made,
)
from regent.controller.partitions.isr_announcements import (
    AFTER_MS,
    TIMER,
    process_isr_announcement_due,
)
from regent.controller.partitions.waiting_leaders import raise_leader_epochs
from regent.model.partition import KnownEpochs, LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.error_codes import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.closed_client import Right, take_rights
from tests.unit.controller.world import T0, T1, World

ID = uuid.UUID(int=77)
EPOCH = 5
"""Leader epoch of the partitions."""


def cluster(**states: Any) -> tuple[World, ActiveController]:
    world = World()
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (1, 2, 3), 1: (2, 1, 3)}, topic_id=ID)
    world.set_state(T0, 1, (1, 2), leader_epoch=EPOCH, **states)
    world.set_state(T1, 2, (2, 1), leader_epoch=EPOCH)
    return world, world.lead()


def request(
    active: ActiveController,
    *changes: IsrChange,
    broker_id: int = 1,
    broker_epoch: int | None = None,
) -> AlterPartitionRequest:
    if broker_epoch is None:
        broker_epoch = active.context.cluster.brokers[broker_id].epoch
    return AlterPartitionRequest(broker_id, broker_epoch, changes)


def ask(
    world: World, active: ActiveController, *requests: AlterPartitionRequest
) -> list[AlterPartitionResponse]:
    asked = [Asked(each, number) for number, each in enumerate(requests)]
    return world.run(process_alter_partition(active, asked))


def change(*isr: int, **fields: Any) -> IsrChange:
    """A change of T0 by its leader, that is granted as it is."""
    given = {"topic": "t", "partition": 0, "leader_epoch": EPOCH, "partition_epoch": 0}
    return IsrChange(**{**given, "isr": isr, **fields})


def error_of(answers: list[AlterPartitionResponse]) -> int:
    (answer,) = answers
    assert answer.error_code == 0
    (result,) = answer.results
    assert (result.state is None) == (result.error_code != 0)
    return result.error_code


class TestAGrantedChange:
    @pytest.mark.parametrize("topic", ["t", ID], ids=["by name", "by id"])
    def test_it_is_written_in_the_order_of_the_leader_under_the_present_controller_epoch(
        self, topic: str | uuid.UUID
    ) -> None:
        world, active = cluster()
        answers = ask(world, active, request(active, change(3, 1, 2, topic=topic)))
        state = LeaderAndIsr(1, EPOCH, (3, 1, 2), active.context.term.epoch, 1)
        assert answers == [AlterPartitionResponse(0, (IsrChangeResult(topic, 0, 0, state),))]
        assert world.state(T0) == state
        assert active.context.cluster.leadership[T0] == state
        assert world.driver.enqueued == [], "no broker stops"

    def test_changes_of_several_brokers_are_one_write(self) -> None:
        world, active = cluster()
        world.driver.performed.clear()
        ask(
            world,
            active,
            request(active, change(1)),
            request(active, change(2, 1, 3, partition=1), broker_id=2),
        )
        writes = [x for x in world.driver.performed if isinstance(x, zk_effects.Write)]
        assert [len(write.operations) for write in writes] == [2]

    def test_a_reassignment_that_is_complete_with_it_goes_on_after_the_answer(self) -> None:
        world = World()
        world.start_broker(1, 2)
        world.create_topic("t", {0: ReplicaAssignment((2, 1), (2,), (1,))})
        world.set_state(T0, 1, (1,), leader_epoch=EPOCH)
        active = world.fail_over()
        current = active.context.cluster.leadership[T0]
        wanted = joined(current)
        assert error_of(ask(world, active, request(active, wanted))) == 0
        assert e.PartitionReassignmentIsrChange((T0,)) in world.driver.enqueued


class TestBrokersThatStop:
    """The last in sync is stopping: it leads until another replica is in sync."""

    def test_another_replica_leads_as_soon_as_it_is_in_sync(self) -> None:
        world = World()
        world.start_broker(1, 2)
        world.create_topic("t", {0: (1, 2)}, topic_id=ID)
        world.set_state(T0, 1, (1,), leader_epoch=EPOCH)
        active = world.fail_over()
        active.context.mark_shutting_down(1)
        current = active.context.cluster.leadership[T0]
        assert error_of(ask(world, active, request(active, joined(current)))) == 0
        assert world.led(T0) == (1, (1, 2))
        follow_up(world, active)
        assert world.led(T0) == (2, (2,))


def joined(current: LeaderAndIsr) -> IsrChange:
    """Broker 2 has caught up."""
    return change(1, 2, leader_epoch=current.leader_epoch, partition_epoch=current.partition_epoch)


def follow_up(world: World, active: ActiveController) -> None:
    """Process what was enqueued behind the answer."""
    (event,) = world.driver.enqueued
    assert isinstance(event, e.IsrChangesMade)
    world.run(process_isr_changes_made(active, event.partitions))


def test_a_replica_of_a_former_topic_that_has_left_the_isr_is_deleted() -> None:
    world, active = cluster()
    active.context.doubtful_replicas[2] = {T0: None}
    active.context.refusals.update(2, refused={T0: "INCONSISTENT_TOPIC_ID"}, done=())
    ask(world, active, request(active, change(1)))
    world.driver.take_sent()
    follow_up(world, active)
    (deletion, creation) = world.driver.sent
    assert tuple(deletion.stop_replica) == (2,)
    assert tuple(creation.leader_and_isr) == (2,)


class TestARepeatedRequest:
    """The answer was lost, or is late: the leader asks for the same again."""

    def test_it_has_the_same_answer_and_writes_nothing(self) -> None:
        world, active = cluster()
        first = ask(world, active, request(active, change(1)))
        world.forget()
        assert ask(world, active, request(active, change(1))) == first
        assert world.driver.performed == []

    def test_a_write_that_has_taken_effect_is_granted_although_its_answer_was_lost(self) -> None:
        """It is repeated, and finds its own version in ZooKeeper: to refuse the change as one of
        a leader that is out of date would make that leader wait for ever."""
        world, active = cluster()
        world.set_state(T0, 1, (1,), leader_epoch=EPOCH, controller_epoch=active.context.term.epoch)
        answers = ask(world, active, request(active, change(1)))
        assert error_of(answers) == 0
        assert answers[0].results[0].state == world.state(T0)
        assert active.context.cluster.leadership[T0] == world.state(T0)


class TestALeaderThatNamesTopics:
    """Up to Kafka 3.0 it keeps its pending ISR after any refusal."""

    def test_it_is_granted_a_member_that_is_stopping(self) -> None:
        world, active = cluster()
        active.context.mark_shutting_down(3)
        assert error_of(ask(world, active, request(active, change(1, 2, 3)))) == 0

    @pytest.mark.parametrize("member", [3, 4], ids=["down", "cannot be"])
    def test_it_gets_a_higher_leader_epoch_where_a_member_is_refused(self, member: int) -> None:
        """Kafka 3.1 sends the change again at once, for ever, after INVALID_REQUEST."""
        world, active = cluster()
        active.context.remove_live_brokers([3])
        wanted = request(active, change(1, 2, member))
        assert error_of(ask(world, active, wanted)) == INVALID_UPDATE_VERSION
        state = world.state_of(T0)
        assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2), EPOCH + 1)
        assert set(world.driver.sent[-1].leader_and_isr) == {1, 2}


class TestALeaderThatWouldWait:
    """It is refused in the leader epoch that is stored, so nobody has news for it."""

    @pytest.mark.parametrize("topic", ["t", ID], ids=["by name", "by id"])
    def test_it_gets_a_higher_leader_epoch(self, topic: str | uuid.UUID) -> None:
        world, active = cluster()
        world.set_state(T0, 1, (1, 2, 3), leader_epoch=EPOCH)
        wanted = request(active, change(1, topic=topic))
        assert error_of(ask(world, active, wanted)) == INVALID_UPDATE_VERSION
        state = world.state_of(T0)
        assert (state.isr, state.leader_epoch) == ((1, 2, 3), EPOCH + 1)
        assert T0 in world.driver.sent[-1].leader_and_isr[1]
        assert world.driver.views[-1] == frozenset({"t"})

    def test_not_if_the_leader_epoch_has_risen_meanwhile(self) -> None:
        world, active = cluster()
        world.run(raise_leader_epochs(active, {T0: KnownEpochs(EPOCH - 1)}))
        assert world.driver.sent == []
        assert world.driver.views == []

    def test_not_if_the_topic_is_gone(self) -> None:
        world, active = cluster()
        world.run(raise_leader_epochs(active, {TopicPartition("gone", 0): KnownEpochs(EPOCH)}))
        assert world.driver.sent == []

    @pytest.mark.parametrize(
        "wanted",
        [
            change(1, leader_epoch=EPOCH - 1),
            change(2, 1, partition=1, partition_epoch=-1),
            change(1, 2),
        ],
        ids=["news is under way", "not the leader", "granted"],
    )
    def test_who_does_not_wait_gets_none(self, wanted: IsrChange) -> None:
        world, active = cluster()
        ask(world, active, request(active, wanted))
        assert active.context.cluster.leadership[T0].leader_epoch == EPOCH
        assert active.context.cluster.leadership[T1].leader_epoch == EPOCH

    def test_if_nothing_can_be_written_it_gets_one_as_soon_as_that_is_possible(self) -> None:
        world, active = cluster()
        client = take_rights(world)
        active = world.fail_over()
        closed = (paths.partition_state(T0), Right.WRITE)
        client.missing.add(closed)
        assert error_of(ask(world, active, request(active, change(1)))) == UNKNOWN_SERVER_ERROR
        world.run(waiting_leaders.repeat(active))
        assert len(world.log.errors(LEADERS_WAIT)) == 2
        client.missing.remove(closed)
        world.run(waiting_leaders.repeat(active))
        state = world.state_of(T0)
        assert (state.isr, state.leader_epoch) == ((1, 2), EPOCH + 1)
        assert T0 in world.driver.sent[-1].leader_and_isr[1]
        assert not active.context.waiting_leaders


class TestStatesThatMayNotBeWritten:
    """A leader of Kafka 3.1 or newer asks again as soon as it has the answer."""

    def ask_for_both(self, world: World, active: ActiveController) -> None:
        led_by_1 = change(1)
        led_by_2 = change(2, partition=1)
        (first, second) = ask(
            world,
            active,
            request(active, led_by_1),
            request(active, led_by_2, broker_id=2),
        )
        assert {error_of([first]), error_of([second])} == {UNKNOWN_SERVER_ERROR}

    def closed(self) -> tuple[World, ActiveController]:
        world, active = cluster()
        client = take_rights(world)
        active = world.fail_over()
        client.missing.update((paths.partition_state(tp), Right.WRITE) for tp in (T0, T1))
        return world, active

    def test_those_of_one_write_are_one_entry(self) -> None:
        world, active = self.closed()
        self.ask_for_both(world, active)
        (reported,) = world.log.errors(ISR_CHANGES_NOT_WRITTEN)
        assert reported["partitions"] == 2
        assert reported["examples"] == [
            f"{tp}: ZooKeeper answered NOAUTH for its state znode" for tp in (T0, T1)
        ]

    def test_a_leader_epoch_is_not_tried_again_for_each_time_that_a_leader_asks(self) -> None:
        world, active = self.closed()
        self.ask_for_both(world, active)
        world.driver.performed.clear()
        self.ask_for_both(world, active)
        assert world.driver.transactions() == 1
        assert len(world.log.errors(LEADERS_WAIT)) == 1
        world.run(waiting_leaders.repeat(active))
        assert len(world.log.errors(LEADERS_WAIT)) == 2


class TestRefusals:
    def test_of_a_former_life_of_a_broker_and_of_an_unknown_one(self) -> None:
        world, active = cluster()
        stale = request(active, change(1), broker_epoch=1)
        unknown = request(active, change(1), broker_id=9, broker_epoch=1)
        refused = AlterPartitionResponse(STALE_BROKER_EPOCH)
        assert ask(world, active, stale, unknown) == [refused, refused]

    @pytest.mark.parametrize(
        ("wanted", "error"),
        [
            (change(1, topic=uuid.UUID(int=78)), UNKNOWN_TOPIC_ID),
            (change(1, topic="unknown"), UNKNOWN_TOPIC_OR_PARTITION),
            (change(1, partition=2), UNKNOWN_TOPIC_OR_PARTITION),
            (change(1, topic=ID, partition=2), UNKNOWN_TOPIC_OR_PARTITION),
            (change(1, leader_epoch=EPOCH - 1), FENCED_LEADER_EPOCH),
            (change(topic=ID), INVALID_REQUEST),
            (change(2, topic=ID), INVALID_REQUEST),
            (change(1, 4, topic=ID), INVALID_REQUEST),
            (change(1, 1, topic=ID), INVALID_REQUEST),
            (change(1, leader_recovery_state=1, topic=ID), INVALID_REQUEST),
            (change(1, leader_recovery_state=2, topic=ID), INVALID_REQUEST),
            (change(2, 1, partition=1, topic=ID), INVALID_REQUEST),
            (change(2, 1, partition=1), INVALID_UPDATE_VERSION),
            (change(4, leader_epoch=EPOCH - 1), FENCED_LEADER_EPOCH),
        ],
    )
    def test_of_a_change_that_does_not_fit_the_partition(
        self, wanted: IsrChange, error: int
    ) -> None:
        world, active = cluster()
        before = dict(active.context.cluster.leadership)
        assert error_of(ask(world, active, request(active, wanted))) == error
        assert world.driver.sent == []
        assert dict(active.context.cluster.leadership) == before

    @pytest.mark.parametrize(("member", "is_down"), [(2, False), (3, False), (3, True)])
    def test_of_a_member_that_is_stopping_or_down(self, member: int, *, is_down: bool) -> None:
        world, active = cluster()
        if is_down:
            active.context.remove_live_brokers([member])
        else:
            active.context.mark_shutting_down(member)
        wanted = change(1, 2, 3, topic=ID)
        assert error_of(ask(world, active, request(active, wanted))) == INELIGIBLE_REPLICA

    def test_of_a_member_in_a_life_that_is_over(self) -> None:
        world, active = cluster()
        alive = active.context.cluster.brokers[3].epoch
        former = change(1, 2, 3, topic=ID, broker_epochs={3: alive - 1})
        unknown = change(1, 2, 3, topic=ID, broker_epochs={3: -1})
        present = change(1, 3, topic=ID, partition_epoch=1, broker_epochs={3: alive})
        assert error_of(ask(world, active, request(active, former))) == INELIGIBLE_REPLICA
        assert error_of(ask(world, active, request(active, unknown))) == 0
        assert error_of(ask(world, active, request(active, present))) == 0

    def test_of_all_but_the_last_change_of_a_partition_in_one_request(self) -> None:
        world, active = cluster()
        ask(world, active, request(active, change(1)))
        cost = len(world.driver.performed)
        world, active = cluster()
        ahead = [change(1, partition_epoch=epoch) for epoch in range(100, 300)]
        (answer,) = ask(world, active, request(active, *ahead, change(1)))
        assert [result.error_code for result in answer.results] == [INVALID_REQUEST] * 200 + [0]
        assert len(world.driver.performed) == cost, "none of them takes a round trip"


class TestRecovery:
    """A leader that was elected uncleanly has recovered (KIP-704)."""

    def test_it_may_end(self) -> None:
        world, active = cluster(leader_recovery_state=1)
        wanted = change(1, leader_recovery_state=0)
        assert error_of(ask(world, active, request(active, wanted))) == 0
        assert world.state_of(T0).leader_recovery_state == 0

    def test_it_does_not_go_on_with_others_in_the_isr(self) -> None:
        world, active = cluster(leader_recovery_state=1)
        wanted = change(1, 3, leader_recovery_state=1, topic=ID)
        assert error_of(ask(world, active, request(active, wanted))) == INVALID_REQUEST


# Other brokers than the leaders learn of ISR changes.


def let_time_pass(world: World, active: ActiveController) -> None:
    timer = world.driver.timers.pop(TIMER)
    assert (timer.after_ms, timer.event) == (AFTER_MS, IsrAnnouncementDue())
    world.run(process_isr_announcement_due(active))


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
