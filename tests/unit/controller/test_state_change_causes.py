"""What the state-change trail says of each thing that happens to a cluster."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from regent.admin.commands import DescribeTopicConfigs
from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.causes import Cause, CauseKind, ChangeKind
from regent.controller.state.state_change_trail import StateChange
from regent.model.partition import TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from tests.unit.controller.driving import NEWEST, once
from tests.unit.controller.world import T0, T1, World, active_of, two_partitions

LATER_MS = 7_000_000_000


class Told(NamedTuple):
    """A change in short."""

    cause: CauseKind
    kind: ChangeKind
    leader: int
    isr: tuple[int, ...]


def cluster(protocol: tuple[int, int] = NEWEST) -> tuple[World, KafkaController]:
    return two_partitions(later_ms=LATER_MS, protocol=protocol)


def changes(controller: KafkaController, tp: TopicPartition) -> tuple[StateChange, ...]:
    trail = active_of(controller).context.trail.partitions.get(tp)
    return () if trail is None else trail.changes


def told(controller: KafkaController, tp: TopicPartition) -> list[Told]:
    return [
        Told(c.cause.kind, c.kind, c.after.leader, c.after.isr)
        for c in changes(controller, tp)
        if c.after is not None
    ]


def last_cause(controller: KafkaController, tp: TopicPartition) -> Cause:
    return changes(controller, tp)[-1].cause


class TestBrokers:
    def test_a_crash_names_the_broker_with_its_session_and_when_it_was_observed(self) -> None:
        world, controller = cluster()
        dead = active_of(controller).context.cluster.brokers[1]
        world.stop_broker(1)
        world.deliver(controller)
        failed = CauseKind.BROKER_FAILED
        assert told(controller, T0) == [Told(failed, ChangeKind.ELECTED_OFFLINE, 2, (2, 3))]
        assert not changes(controller, T1)
        cause = last_cause(controller, T0)
        assert (cause.event, cause.time_ms) == ("BrokerChange", LATER_MS)
        (life,) = cause.brokers
        assert (life.broker_id, life.epoch, life.session_id) == (1, dead.epoch, dead.session_id)
        assert life.session_id

    def test_what_a_broker_did_last_is_known_without_a_change(self) -> None:
        world, controller = cluster()
        world.start_broker(4)
        world.deliver(controller)
        assert active_of(controller).context.trail.broker_causes[4].kind is CauseKind.BROKER_STARTED
        assert not active_of(controller).context.trail.partitions


def test_a_write_of_ours_whose_answer_was_lost_is_found_and_told() -> None:
    world, controller = cluster()
    world.stop_broker(3)

    def the_first_attempt_arrived() -> None:
        world.set_state(T0, 1, (1, 2), leader_epoch=6, controller_epoch=1)

    world.driver.before = once(zk_effects.Write, the_first_attempt_arrived)
    world.deliver(controller)
    (change,) = changes(controller, T0)
    assert told(controller, T0) == [
        Told(CauseKind.BROKER_FAILED, ChangeKind.OBSERVED, 1, (1, 2)),
    ]
    assert change.after == active_of(controller).context.cluster.leadership[T0]


def test_a_topic_that_is_being_deleted_and_one_that_is_gone() -> None:
    world, controller = cluster()
    world.stop_broker(3)
    world.deliver(controller)
    world.mark_for_deletion("t")
    world.deliver(controller)
    assert told(controller, T0)[-1].cause is CauseKind.TOPIC_DELETION
    assert "t" not in active_of(controller).context.trail.removed_topics

    world.delete(paths.topic("t"))
    world.deliver(controller)
    trail = active_of(controller).context.trail
    assert T0 not in trail.partitions
    assert trail.removed_topics["t"].kind is CauseKind.TOPIC_VANISHED


def test_each_event_begins_a_cause_of_its_own_commands_included() -> None:
    world, controller = cluster()
    world.stop_broker(1)
    world.deliver(controller)
    world.driver.now_ms += 1
    world.process(controller, e.CommandsReceived((DescribeTopicConfigs(("t",)),), "reply"))
    state = active_of(controller).context.cluster.leadership[T0]
    changed = msgspec.structs.replace(state, leader_epoch=9)
    active_of(controller).context.cluster.set_leadership({T0: changed})
    cause = last_cause(controller, T0)
    assert (cause.kind, cause.event) == (CauseKind.OTHER, "CommandsReceived")
    assert cause.time_ms == LATER_MS + 1


def test_each_step_of_a_move_is_told() -> None:
    world, controller = cluster((2, 6))
    world.put(paths.REASSIGN_PARTITIONS, encode_reassign_partitions({T1: (1, 3)}))
    world.deliver(controller)
    state = world.state_of(T1)
    world.set_state(T1, 2, (2, 3, 1), leader_epoch=state.leader_epoch, controller_epoch=1)
    world.deliver(controller)
    reassignment = CauseKind.REASSIGNMENT
    assert told(controller, T1) == [
        Told(reassignment, ChangeKind.WRITTEN, 2, (2, 3)),
        Told(CauseKind.ISR_CHANGE, ChangeKind.OBSERVED, 2, (2, 3, 1)),
        Told(reassignment, ChangeKind.ELECTED_REASSIGN, 1, (2, 3, 1)),
        Told(reassignment, ChangeKind.REPLICA_OFFLINE, 1, (3, 1)),
    ]
