"""A right that is missing on one znode costs what concerns that znode, and nothing for good.

The whole life of a controller takes place while ZooKeeper refuses one kind of operation on one
node. Then the right is given, a minute passes, and everything has to be as it would have been.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from regent.admin.commands import (
    AlterPartitionReassignments,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectionType,
    ElectLeaders,
    ReassignTopic,
)
from regent.controller import events as e
from regent.controller.commands import (
    AlterUserScramCredentials,
    Command,
    ControlledShutdown,
    ScramUpsertion,
)
from regent.controller.kafka_controller import KafkaController
from regent.controller.term.watches import WATCHED_PARENTS
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import StopReplicaResponse
from regent.zk_data import paths
from regent.zk_data.permitted_reads import UNREADABLE_MAX
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from regent.zk_data.throttles import THROTTLED_BROKERS, THROTTLED_TOPICS
from regent.zk_data.topics import encode_partition_state
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.closed_client import Right, take_rights
from tests.unit.controller.world import World, active_of

ASSIGNMENTS = {
    "moving": {0: (1, 2), 1: (2, 3), 2: (3, 1)},
    "going": {0: (1, 2), 1: (2, 3)},
}
ALL = pytest.mark.parametrize("protocol", [(2, 6), (3, 9)])


class Life:
    """A controller, the brokers that answer it, and what people ask of it meanwhile."""

    def __init__(self, protocol: tuple[int, int]) -> None:
        self.world = World()
        self.world.driver.inter_broker_protocol = protocol
        self.client = take_rights(self.world)
        self.world.start_broker(1, 2, 3, 4)
        for topic, assignments in ASSIGNMENTS.items():
            self.world.create_led_topic(topic, assignments, config={"retention.ms": "9"})
        self.controller = self.world.controller()

    def events(self) -> Iterator[None]:
        """What happens, one after the other."""
        world = self.world
        self._process(e.Startup(), e.Eligible())
        yield
        self._ask(CreateTopic("new", 2, 2, config={"retention.ms": "5"}))
        yield
        self._ask(CreatePartitions("moving", 5))
        yield
        self._ask(AlterTopicConfig("moving", set={"retention.ms": "11"}))
        yield
        self._move(0, 3, 4, throttle=1000)
        yield
        self._move(1, 2, 4)
        yield
        self._ask(ReassignTopic("going", {0: (2, 1)}))
        yield
        request = encode_reassign_partitions({TopicPartition("moving", 2): (3, 2)})
        world.put(paths.REASSIGN_PARTITIONS, request)
        self._settle()
        yield
        for partition, isr in ((0, (1, 2, 3, 4)), (1, (2, 3, 4)), (2, (3, 1, 2))):
            self._catch_up(partition, *isr)
            yield
        self._shut_down(2)
        yield
        world.stop_broker(2)
        self._settle()
        yield
        world.start_broker(2)
        self._settle()
        yield
        self._ask(DeleteTopic("going"))
        yield
        self._ask(ElectLeaders(ElectionType.PREFERRED))
        yield
        credential = ScramUpsertion("bob", "SCRAM-SHA-256", 4096, b"1", b"2")
        self._ask(AlterUserScramCredentials((credential,)))
        yield
        self.pass_a_minute()
        yield
        self._process(e.SessionReconnected())
        yield

    def pass_a_minute(self) -> None:
        self._process(self.world.driver.timers["watch check"].event)

    def is_settled(self) -> bool:
        """Whether the controller knows what ZooKeeper has, and nothing is left undone."""
        cluster = active_of(self.controller).context.cluster
        zookeeper = self.world.zookeeper
        stored = {
            topic: self.world.topic(topic).assignments
            for topic in zookeeper.children(paths.BROKER_TOPICS)
        }
        moving = [tp for tp in cluster.partitions_being_reassigned if self._is_in_sync(tp)]
        known = {
            topic: {tp.partition: each for tp, each in cluster.partitions_of(topic).items()}
            for topic in cluster.topics
        }
        throttled = dict.fromkeys(tp.topic for tp in cluster.partitions_being_reassigned)
        return (
            known == stored
            and not moving
            and not zookeeper.children(paths.DELETE_TOPICS)
            and not set(zookeeper.children(THROTTLED_TOPICS)) - set(throttled)
            and (bool(throttled) or not zookeeper.children(THROTTLED_BROKERS))
        )

    def _is_in_sync(self, tp: TopicPartition) -> bool:
        state = self.world.state(tp)
        target = self.world.topic(tp.topic).assignments[tp.partition].target_replicas
        return state is not None and set(target) <= set(state.isr)

    def _process(self, *events: e.ControllerEvent) -> None:
        self.world.process(self.controller, *events)
        self._settle()

    def _ask(self, *commands: Command) -> None:
        self._process(e.CommandsReceived(commands, "somebody"))

    def _move(self, partition: int, *target: int, throttle: int | None = None) -> None:
        tp = TopicPartition("moving", partition)
        self._ask(AlterPartitionReassignments({tp: target}, {}, throttle))

    def _catch_up(self, partition: int, *isr: int) -> None:
        """New replicas are in sync, if they are replicas."""
        tp = TopicPartition("moving", partition)
        state = self.world.state_of(tp)
        if not set(isr) <= set(self.world.topic("moving").assignments[partition].replicas):
            return
        changed = encode_partition_state(msgspec.structs.replace(state, isr=isr))
        self.world.put(paths.partition_state(tp), changed)
        self.world.put(
            paths.isr_change_notification(f"isr_change_{partition:010}"),
            encode_isr_change_notification([tp]),
        )
        self._settle()

    def _shut_down(self, broker_id: int) -> None:
        broker = active_of(self.controller).context.cluster.brokers[broker_id]
        self._ask(ControlledShutdown(broker_id, broker.epoch))

    def _settle(self) -> None:
        """Watches report, brokers delete what they are told to, until nothing is left."""
        driver = self.world.driver
        while self.world.deliver(self.controller) or driver.sent or driver.enqueued:
            enqueued, driver.enqueued = driver.enqueued, []
            self.world.process(self.controller, *enqueued)
            for sent in driver.take_sent():
                for broker_id, partitions in sent.stop_replica.items():
                    answer = StopReplicaResponse(broker_id, 0, {}, partitions)
                    self.world.process(self.controller, e.StopReplicaResponseReceived((answer,)))


def assert_active(controller: KafkaController, world: World) -> None:
    assert controller.active is not None, world.log.errors("Event failed, giving the controller up")


@ALL
@pytest.mark.parametrize(
    ("path", "right"),
    [
        (paths.DELETE_TOPICS, Right.CREATE),
        (paths.DELETE_TOPICS, Right.DELETE),
        (paths.ADMIN, Right.DELETE),
        (paths.BROKER_TOPICS, Right.CREATE),
        (paths.BROKER_TOPICS, Right.DELETE),
        (paths.topic("going"), Right.WRITE),
        (paths.topic("going"), Right.DELETE),
        (paths.topic_partitions("going"), Right.DELETE),
        (paths.partition_state(TopicPartition("going", 0)), Right.WRITE),
        (paths.topic("moving"), Right.WRITE),
        (paths.topic_partitions("moving"), Right.CREATE),
        (paths.partition_state(TopicPartition("moving", 0)), Right.WRITE),
        (paths.topic("new"), Right.CREATE),
        (paths.ISR_CHANGE_NOTIFICATION, Right.DELETE),
        (paths.CONFIG_CHANGES, Right.CREATE),
        (paths.TOPIC_CONFIGS, Right.CREATE),
        (paths.TOPIC_CONFIGS, Right.DELETE),
        (paths.topic_config("moving"), Right.WRITE),
        (paths.BROKER_CONFIGS, Right.CREATE),
        (paths.broker_config(1), Right.WRITE),
        (paths.USER_CONFIGS, Right.CREATE),
        ("/regent", Right.CREATE),
        ("/regent/shutting_down_brokers", Right.CREATE),
        ("/regent/shutting_down_brokers", Right.DELETE),
        ("/regent/stray_replicas", Right.CREATE),
        ("/regent/stray_replicas/1", Right.CREATE),
        (THROTTLED_TOPICS, Right.CREATE),
        (THROTTLED_TOPICS, Right.DELETE),
        (THROTTLED_BROKERS, Right.CREATE),
        (THROTTLED_BROKERS, Right.DELETE),
    ],
)
def test_a_write_that_is_refused_costs_no_controller_and_is_made_up_for(
    protocol: tuple[int, int], path: str, right: Right
) -> None:
    life = Life(protocol)
    life.client.missing.add((path, right))
    for _ in life.events():
        assert_active(life.controller, life.world)
    assert life.client.refused
    life.client.missing.clear()
    life.pass_a_minute()
    assert life.is_settled()


def test_isr_changes_that_may_not_be_read_are_read_later() -> None:
    """Of leaders that change ISRs in ZooKeeper: the notification is gone by then."""
    life = Life((2, 6))
    path = paths.partition_state(TopicPartition("moving", 0))
    life.client.missing.add((path, Right.READ))
    for _ in life.events():
        assert_active(life.controller, life.world)
    assert life.client.refused == {(path, Right.READ)}
    assert not life.is_settled()
    life.client.missing.clear()
    life.pass_a_minute()
    assert life.is_settled()


def test_what_is_closed_one_after_the_other_may_become_any_number() -> None:
    """More at once would say that all rights are missing."""
    world = World()
    world.start_broker(1)
    topics = [f"t{number}" for number in range(UNREADABLE_MAX + 10)]
    for topic in topics:
        world.create_topic(topic, {0: (1,)})
    client = take_rights(world)
    controller = world.active_controller()
    unread = active_of(controller).context.unread_states
    for topic in topics:
        tp = TopicPartition(topic, 0)
        client.missing |= {
            (paths.topic(topic), Right.READ),
            (paths.partition_state(tp), Right.READ),
        }
        world.create_topic(topic, {0: (1,), 1: (1,)})
        world.put(
            paths.isr_change_notification("isr_change_0"), encode_isr_change_notification([tp])
        )
        world.deliver(controller)
    assert (
        len(unread) == len(active_of(controller).context.cluster.unreadable_topics) == len(topics)
    )
    check = world.driver.timers["watch check"].event
    world.process(controller, check)
    assert_active(controller, world)
    client.missing.clear()
    world.process(controller, check)
    assert not unread
    assert not active_of(controller).context.cluster.unreadable_topics


@ALL
def test_elections_that_nobody_may_read_cost_no_controller_and_no_later_ones(
    protocol: tuple[int, int],
) -> None:
    life, path = Life(protocol), paths.PREFERRED_REPLICA_ELECTION
    life.world.put(path, b"{}")
    life.client.missing.add((path, Right.READ))
    for _ in life.events():
        assert_active(life.controller, life.world)
    assert life.client.refused == {(path, Right.READ)}
    assert not life.world.exists(path)
    life.client.missing.clear()
    life.world.put(path, b"{}")
    assert life.world.deliver(life.controller)
    assert not life.world.exists(path)


@pytest.mark.parametrize("path", WATCHED_PARENTS)
def test_who_may_not_read_what_every_controller_needs_deposes_nobody(path: str) -> None:
    """A broker's controller that is deposed in the middle of something is a danger later."""
    world = World()
    world.start_broker(1, 2)
    world.elect_broker(1)
    client = take_rights(world, (path, Right.READ))
    controller = world.controller()
    world.process(controller, e.Startup(), e.Eligible(), e.Reelect(), e.Reelect())
    assert controller.active is None
    assert world.holder() == 1
    (first, *_) = world.log.errors("Event failed, giving the controller up")
    assert f"NOAUTH for {path}" in str(first["error"])
    client.missing.clear()
    world.process(controller, e.Reelect())
    assert_active(controller, world)
