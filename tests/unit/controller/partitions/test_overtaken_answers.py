"""Leaders that an answer reaches after a higher leader epoch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import IsrChange
from regent.controller.effects import SendRequests
from regent.controller.events import AnswersOvertaken
from regent.controller.partitions.overtaken_answers import (
    INTERVAL_MS,
    TIMER,
    process_answers_overtaken,
)
from regent.controller.reassignment.new_epochs import announce
from regent.model.partition import TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.protocol.error_codes import FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION
from regent.zk_data import paths
from regent.zk_data.effects import Effect, Write
from regent.zk_data.operations import Create
from regent.zk_data.overtaken_answers import (
    OVERTAKEN_ANSWERS,
    encode_begun_terms,
    encode_overtaken_answer,
    overtaken_answer,
)
from tests.unit.controller.partitions.test_alter_partition import (
    EPOCH,
    ID,
    ask,
    change,
    cluster,
    error_of,
    request,
)
from tests.unit.controller.world import T0, T1, World


def let_time_pass(world: World, active: ActiveController, *, intervals: int = 2) -> None:
    """Until an answer of before has been forgotten, or what it may have cost is put right."""
    for _ in range(intervals):
        timer = world.driver.timers.pop(TIMER)
        assert (timer.after_ms, timer.event) == (INTERVAL_MS, AnswersOvertaken())
        world.run(process_answers_overtaken(active))


def notes(world: World) -> list[str]:
    """Names of the notes for successors."""
    return list(world.zookeeper.children(OVERTAKEN_ANSWERS))


def begun_terms(world: World) -> bytes:
    """The note about terms that have just begun."""
    node = world.node(OVERTAKEN_ANSWERS)
    return node.data


def leader_epoch(active: ActiveController) -> int:
    return active.context.cluster.leadership[T0].leader_epoch


WHOLE = TopicPartition("t", 2)
"""A partition whose replicas are all in sync."""

OLD = change(1, 2, 3, leader_epoch=EPOCH - 1)
"""Asked for before the leader knew its present leader epoch."""


def test_a_leader_that_has_not_asked_since_gets_a_higher_leader_epoch() -> None:
    world, active = cluster()
    assert error_of(ask(world, active, request(active, OLD))) == FENCED_LEADER_EPOCH
    assert leader_epoch(active) == EPOCH
    let_time_pass(world, active)
    assert leader_epoch(active) == EPOCH + 1
    assert T0 in world.driver.sent[-1].leader_and_isr[1]
    state = world.state_of(T0)
    assert (state.isr, state.leader_epoch) == ((1, 2), EPOCH + 1)


def test_a_leader_that_has_asked_since_gets_none() -> None:
    world, active = cluster()
    ask(world, active, request(active, OLD))
    ask(world, active, request(active, change(1, 2, 3)))
    let_time_pass(world, active)
    assert leader_epoch(active) == EPOCH


def test_a_leader_epoch_that_is_raised_before_the_answer_may_not_be_enough() -> None:
    world, active = cluster()
    world.set_state(T0, 1, (1, 2, 3), leader_epoch=EPOCH)
    assert error_of(ask(world, active, request(active, change(1)))) == INVALID_UPDATE_VERSION
    assert leader_epoch(active) == EPOCH + 1
    let_time_pass(world, active)
    assert leader_epoch(active) == EPOCH + 2


def test_one_that_is_raised_later_is() -> None:
    world, active = cluster()
    assert error_of(ask(world, active, request(active, change(1, 2, 3)))) == 0
    let_time_pass(world, active)
    assert TIMER not in world.driver.timers
    world.run(announce(active, [T0]))
    assert TIMER not in world.driver.timers
    assert notes(world) == []


@pytest.mark.parametrize(
    "harmless",
    [
        change(1, 2, 3, leader_epoch=EPOCH - 1, topic=ID),
        change(2, 1, 3, partition=1, leader_epoch=EPOCH - 1),
    ],
    ids=["by id", "not the leader"],
)
def test_other_answers_take_nothing_away(harmless: IsrChange) -> None:
    world, active = cluster()
    ask(world, active, request(active, harmless))
    assert TIMER not in world.driver.timers


def say_version(active: ActiveController, broker_id: int, version: tuple[int, int]) -> None:
    epoch = active.context.cluster.brokers[broker_id].epoch
    facts = BrokerFacts(broker_id=broker_id, versions=(version,), has_answered=True)
    active.context.broker_facts.learn(epoch, facts)


def test_leaders_of_newer_releases_lose_nothing() -> None:
    world, active = cluster()
    say_version(active, 1, (3, 0))
    ask(world, active, request(active, OLD))
    assert TIMER not in world.driver.timers
    assert notes(world) == []


def test_a_note_is_written_before_a_leader_epoch_that_may_overtake_an_answer() -> None:
    world, active = cluster()
    ask(world, active, request(active, change(1, 2, 3)))
    seen: list[list[str]] = []

    def before(effect: Effect[object]) -> None:
        is_raise = isinstance(effect, Write) and not isinstance(effect.operations[0], Create)
        if is_raise or isinstance(effect, SendRequests):
            seen.append(notes(world))

    world.driver.before = before
    world.run(announce(active, [T0]))
    assert seen == [["t-0"], ["t-0"]]


class TestAfterAFailover:
    """Nobody knows what the predecessor has answered. Replica 3 of T0 and T1 is not in sync."""

    @staticmethod
    def cluster(protocol: tuple[int, int] = (2, 8), **settings: Any) -> World:
        world = World(**settings)
        world.driver.inter_broker_protocol = protocol
        world.start_broker(1, 2, 3)
        world.create_topic("t", {0: (1, 2, 3), 1: (2, 1, 3), 2: (1, 2)})
        world.set_state(T0, 1, (1, 2), leader_epoch=EPOCH)
        world.set_state(T1, 2, (2, 1), leader_epoch=EPOCH)
        world.set_state(WHOLE, 1, (1, 2), leader_epoch=EPOCH)
        return world

    @classmethod
    def fail_over(
        cls,
        protocol: tuple[int, int] = (2, 8),
        *,
        down: int | None = None,
        noted: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> tuple[World, ActiveController]:
        world = cls.cluster(protocol)
        for tp, noted_epoch in noted.items():
            world.put(overtaken_answer(tp), encode_overtaken_answer(noted_epoch))
        if down is not None:
            world.stop_broker(down)
        active = world.fail_over()
        world.driver.take_sent()
        return world, active

    def test_leaders_that_do_not_ask_get_a_higher_leader_epoch(self) -> None:
        world, active = self.fail_over()
        ask(world, active, request(active, change(1, 2, 3)))
        let_time_pass(world, active, intervals=1)
        epochs = {tp: s.leader_epoch for tp, s in active.context.cluster.leadership.items()}
        assert epochs == {T0: EPOCH, T1: EPOCH + 1, WHOLE: EPOCH}
        assert T1 in world.driver.sent[-1].leader_and_isr[2]

    def test_so_do_those_that_a_predecessor_has_noted(self) -> None:
        world, active = self.fail_over(noted={WHOLE: EPOCH - 1})
        let_time_pass(world, active, intervals=1)
        assert active.context.cluster.leadership[WHOLE].leader_epoch == EPOCH + 1
        assert WHOLE in world.driver.sent[-1].leader_and_isr[1]
        assert notes(world) == []

    def test_not_where_the_predecessor_was_gone_before_it_raised_the_leader_epoch(self) -> None:
        world, _ = self.fail_over(noted={WHOLE: EPOCH, TopicPartition("gone", 0): 0})
        assert notes(world) == []

    def test_a_note_that_does_not_decode_counts(self) -> None:
        world = self.cluster()
        world.put(overtaken_answer(WHOLE), b"?")
        active = world.fail_over()
        let_time_pass(world, active, intervals=1)
        assert active.context.cluster.leadership[WHOLE].leader_epoch == EPOCH + 1
        assert world.log.errors("Malformed notes")

    def test_a_term_that_has_just_begun_is_noted_before_a_leader_epoch_is_raised(self) -> None:
        world = self.cluster()
        world.stop_broker(1)
        seen: list[bytes] = []

        def before(effect: Effect[object]) -> None:
            if isinstance(effect, Write) and any(
                operation.path == paths.partition_state(T1) for operation in effect.operations
            ):
                node = world.node(OVERTAKEN_ANSWERS)
                seen.append(node.data)

        world.driver.before = before
        active = world.fail_over()
        own = encode_begun_terms([active.context.term.epoch])
        assert seen == [own]
        let_time_pass(world, active, intervals=1)
        assert begun_terms(world) == own
        let_time_pass(world, active, intervals=1)
        assert begun_terms(world) == encode_begun_terms([])

    def test_what_a_predecessor_has_written_in_the_beginning_of_its_term_is_looked_after(
        self,
    ) -> None:
        """It was gone before it could do so."""
        world = self.cluster()
        world.put(OVERTAKEN_ANSWERS, encode_begun_terms([4]))
        world.set_state(WHOLE, 1, (1, 2), leader_epoch=EPOCH, controller_epoch=4)
        world.put(paths.CONTROLLER_EPOCH, b"5")
        active = world.fail_over()
        assert begun_terms(world) == encode_begun_terms([4, 6])
        let_time_pass(world, active, intervals=1)
        assert active.context.cluster.leadership[WHOLE].leader_epoch == EPOCH + 1
        let_time_pass(world, active, intervals=1)
        assert begun_terms(world) == encode_begun_terms([])

    @pytest.mark.parametrize("protocol", [(2, 6), (3, 0), (3, 9)])
    def test_in_other_releases_nobody_waits(self, protocol: tuple[int, int]) -> None:
        world, _ = self.fail_over(protocol)
        assert TIMER not in world.driver.timers

    def test_while_brokers_are_upgraded_those_are_looked_after_that_ask_already(self) -> None:
        world = self.cluster((2, 6))
        world.driver.broker_protocols = {1: (2, 6), 2: (2, 8), 3: (2, 6)}
        active = world.fail_over()
        let_time_pass(world, active, intervals=1)
        assert active.context.cluster.leadership[T1].leader_epoch == EPOCH + 1

    def test_a_replica_that_is_down_is_not_asked_for(self) -> None:
        world, active = self.fail_over(down=3)
        let_time_pass(world, active)
        assert leader_epoch(active) == EPOCH
        assert TIMER not in world.driver.timers
