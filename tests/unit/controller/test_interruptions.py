"""Whatever the controller is doing: at every effect the world may take its place away.

Each scenario is run once to count its effects, then once more for each of them, with the
interruption right before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import pytest

from regent.controller import effects
from regent.controller import events as e
from regent.controller.commands import (
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectionType,
    ElectLeaders,
)
from regent.controller.effects import Effect
from regent.controller.kafka_controller import KafkaController
from regent.model.errors import (
    RegentError,
    SessionExpiredError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from tests.support.broker_znodes import (
    encode_isr_change_notification,
    encode_log_dir_event,
    encode_preferred_replica_election,
)
from tests.unit.controller.world import CONTROLLER_ID, T0, World, active_of

Scenario = tuple[World, KafkaController, e.ControllerEvent]

COMMANDS = (
    CreateTopic("new", 2, 2),
    CreatePartitions("t", 4),
    AlterTopicConfig("t", {"unclean.leader.election.enable": "true"}),
    ElectLeaders(ElectionType.UNCLEAN),
    DeleteTopic("t"),
)


def cluster() -> World:
    """Partitions on three brokers, one leaderless, one not created, and a topic being deleted."""
    world = World()
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (1, 2), 1: (2, 3), 2: (9,)})
    world.set_state(T0, 1, (1, 2), leader_epoch=5)
    world.set_state(TopicPartition("t", 1), 9, (9, 3), leader_epoch=5)
    world.create_led_topic("marked", {0: (1, 2)})
    return world


def failover() -> Scenario:
    world = cluster()
    world.mark_for_deletion("marked", "nobody")
    controller = world.controller()
    world.process(controller, e.Startup())
    return world, controller, e.Eligible()


def running() -> tuple[World, KafkaController]:
    world = cluster()
    return world, world.active_controller()


def broker_failure() -> Scenario:
    world, controller = running()
    world.stop_broker(1)
    world.bounce_broker(2)
    world.start_broker(4)
    return world, controller, e.BrokerChange()


def new_topics() -> Scenario:
    world, controller = running()
    world.create_topic("u", {0: (1, 2), 1: (3, 1)})
    return world, controller, e.TopicChange()


def growth() -> Scenario:
    world, controller = running()
    world.create_topic("t", {0: (1, 2), 1: (2, 3), 2: (9,), 3: (3, 1)})
    return world, controller, e.PartitionModifications(("t",))


def deletion() -> Scenario:
    world, controller = running()
    world.mark_for_deletion("marked", "nobody")
    return world, controller, e.TopicDeletion()


def notifications() -> Scenario:
    world, controller = running()
    world.set_state(T0, 1, (1,), leader_epoch=5)
    world.put(
        paths.isr_change_notification("isr_change_0000000001"),
        encode_isr_change_notification([T0]),
    )
    world.put(paths.log_dir_event_notification("log_dir_event_0000000001"), encode_log_dir_event(2))
    return world, controller, e.SessionReconnected()


def requested_leaders() -> Scenario:
    world = cluster()
    world.set_state(T0, 2, (2, 1), leader_epoch=5)
    controller = world.active_controller()
    world.put(paths.PREFERRED_REPLICA_ELECTION, encode_preferred_replica_election([T0]))
    return world, controller, e.ReplicaLeaderElection()


def leaders_out_of_balance() -> Scenario:
    world = cluster()
    world.set_state(T0, 2, (2, 1), leader_epoch=5)
    return world, world.active_controller(), e.AutoPreferredReplicaLeaderElection()


def commands() -> Scenario:
    world, controller = running()
    return world, controller, e.CommandsReceived(COMMANDS, "token")


ON_ZOOKEEPER = (
    effects.ReadData,
    effects.ReadChildren,
    effects.Exists,
    effects.Multi,
    effects.Write,
)


def reassignment() -> Scenario:
    """Two partitions begin, one is to be completed, one gets another target."""
    world, controller = running()
    assert controller.active is not None
    moving = {TopicPartition("marked", 0): (3, 2), T0: (2, 3)}
    world.put(paths.REASSIGN_PARTITIONS, encode_reassign_partitions(moving))
    world.deliver(controller)
    world.set_state(TopicPartition("marked", 0), 1, (1, 2, 3), leader_epoch=6, controller_epoch=1)
    wanted = {T0: (2, 1), TopicPartition("t", 1): (1, 2)}
    world.put(paths.REASSIGN_PARTITIONS, encode_reassign_partitions(wanted))
    return world, controller, e.SessionReconnected()


SCENARIOS = [
    failover,
    broker_failure,
    new_topics,
    growth,
    deletion,
    notifications,
    requested_leaders,
    leaders_out_of_balance,
    commands,
    reassignment,
]


class Interruption:
    """Counts effects on ZooKeeper and interrupts before one of them."""

    def __init__(self, position: int, interrupt: Callable[[], None]) -> None:
        self._position = position
        self._interrupt = interrupt
        self.count = 0

    def __call__(self, effect: Effect[object]) -> None:
        if isinstance(effect, ON_ZOOKEEPER):
            self.count += 1
            if self.count == self._position:
                self._interrupt()


def interrupted(
    scenario: Callable[[], Scenario], interrupt: Callable[[World, KafkaController], None]
) -> Iterator[tuple[World, KafkaController]]:
    """The scenario with an interruption before its first, second, ... effect, until its end."""
    for position in count(1):
        world, controller, event = scenario()
        interruption = Interruption(position, partial(interrupt, world, controller))
        world.driver.before = interruption
        world.process(controller, event)
        if interruption.count < position:
            assert position > 1, "there was nothing to interrupt"
            return
        if isinstance(event, e.CommandsReceived):
            (answer,) = world.driver.answers
            assert len(answer.answer) == len(event.commands)
        yield world, controller


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_after_another_controller_is_elected_nothing_is_written(
    scenario: Callable[[], Scenario],
) -> None:
    written: list[object] = []

    def elect_rival(world: World, controller: KafkaController) -> None:
        if controller.active is None:
            return
        ours = world.driver.client.session_id
        world.elect_rival(2)
        world.zookeeper.on_transaction(
            lambda applied: written.append(applied) if applied.session_id == ours else None
        )

    for _ in interrupted(scenario, elect_rival):
        assert written == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_after_another_controller_is_elected_its_news_ends_ours(
    scenario: Callable[[], Scenario],
) -> None:
    for world, controller in interrupted(scenario, lambda world, _: world.elect_rival(2)):
        world.driver.before = lambda _: None
        world.deliver(controller)
        # Elected after the rival, it is the one whose news counts.
        expected = 2 if controller.active is None else CONTROLLER_ID
        assert controller.life.controller_id_seen == world.holder() == expected


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(
    "kind", [SessionExpiredError, ZooKeeperUnavailableError, UnexpectedZooKeeperError]
)
def test_whatever_breaks_the_next_term_puts_right(
    scenario: Callable[[], Scenario], kind: type[RegentError]
) -> None:
    def fail(_: World, __: KafkaController) -> None:
        raise kind("a test")

    for world, controller in interrupted(scenario, fail):
        world.driver.before = lambda _: None
        if controller.active is None:
            world.process(controller, e.Reelect())
        world.deliver(controller)
        world.process(controller, *world.driver.enqueued)
        context = active_of(controller).context
        live = context.live_broker_ids
        for tp, leadership in context.cluster.leadership.items():
            if tp.topic != "marked" and not context.is_topic_queued_for_deletion(tp.topic):
                assert leadership == world.state(tp)
                electable = any(r in live for r in leadership.isr)
                assert (leadership.leader in live) == electable
                assert leadership.leader in (-1, *leadership.isr)
        assert not world.exists(paths.delete_topic("nobody"))
        assert world.zookeeper.children(paths.ISR_CHANGE_NOTIFICATION) == ()
        assert not world.exists(paths.PREFERRED_REPLICA_ELECTION)
        assert world.log.errors("Illegal partition transition") == []
        assert world.log.errors("Illegal replica transition") == []
