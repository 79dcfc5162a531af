"""A cluster in an in-memory ZooKeeper: brokers, topics, and one controller process."""

from __future__ import annotations

import uuid
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from regent.admin.topic_admin import Chance
from regent.controller.active_controller import ActiveController
from regent.controller.brokers.broker_changes import process_broker_change
from regent.controller.config import ControllerConfig
from regent.controller.events import ControllerEvent, Eligible, Startup
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import ReplicaState
from regent.controller.state.term import Term
from regent.controller.term import cluster_loading, controller_election, failover
from regent.controller.term.watches import event_of
from regent.controller.topics import topic_ids
from regent.controller.topics.topic_changes import process_topic_change, process_topic_deletion
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.control_requests import ControlRequests
from regent.simulation.broker_znodes import encode_broker, encode_cluster_id
from regent.simulation.zookeeper import InMemoryClient, InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.config import encode_config_change, encode_entity_config
from regent.zk_data.controller import decode_controller
from regent.zk_data.effects import Effect
from regent.zk_data.operations import Create, Delete, SetData, WatchedEvent, Written, ZNode
from regent.zk_data.topics import (
    TopicZNode,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from tests.unit.controller.driving import NEWEST, Driver, RecordingLog

T = TypeVar("T")

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CONTROLLER_ID = 1_000_000_001
CLUSTER = "n3LGxFDzQWqSyzyhB5OxsA"


class World:
    """A cluster as ZooKeeper knows it, and one controller process."""

    def __init__(self, **settings: Any) -> None:
        self.zookeeper = InMemoryZooKeeper()
        self.outsider = self.zookeeper.connect()
        self.driver = Driver(self.zookeeper.connect())
        self.log = RecordingLog()
        self.config = ControllerConfig(CONTROLLER_ID, **settings)
        self.topic_ids = 0
        self.draws: list[int] = []
        self._brokers: dict[int, InMemoryClient] = {}
        for path in paths.PERSISTENT_PATHS:
            self.put(path)
        self.put(paths.CLUSTER_ID, encode_cluster_id(CLUSTER))
        self.driver.client.take_events()

    # What brokers and people do

    def put(self, path: str, data: bytes = b"") -> None:
        """Create or replace a node, with its parents."""
        parent = path.rpartition("/")[0]
        if parent and self.zookeeper.get(parent) is None:
            self.put(parent)
        exists = self.zookeeper.get(path) is not None
        (result,) = self.outsider.multi([SetData(path, data) if exists else Create(path, data)])
        assert isinstance(result, Written), result

    def delete(self, path: str) -> None:
        """Delete a node and everything below it."""
        for child in self.zookeeper.children(path):
            self.delete(f"{path}/{child}")
        (result,) = self.outsider.multi([Delete(path)])
        assert isinstance(result, Written), result

    def start_broker(
        self,
        *broker_ids: int,
        rack: str | None = None,
        port: int = 9092,
        registration_version: int = 4,
        seen_by: ActiveController | None = None,
    ) -> None:
        """Register brokers, each in a session of its own.

        Args:
            seen_by: The controller that processes the change.
        """
        for broker_id in broker_ids:
            session = self._brokers.get(broker_id)
            if session is None:
                session = self._brokers[broker_id] = self.zookeeper.connect()
            broker = make_broker(
                broker_id, rack=rack, port=port, registration_version=registration_version
            )
            data = encode_broker(broker, timestamp_ms=0)
            path = paths.broker_id(broker_id)
            if self.zookeeper.get(path) is None:
                session.multi([Create(path, data, ephemeral=True)])
            else:
                session.multi([SetData(path, data)])
        self._process_broker_change(seen_by)

    def stop_broker(self, *broker_ids: int, seen_by: ActiveController | None = None) -> None:
        """End the sessions of brokers."""
        for broker_id in broker_ids:
            self._brokers.pop(broker_id).close()
        self._process_broker_change(seen_by)

    def bounce_broker(self, broker_id: int, *, seen_by: ActiveController | None = None) -> None:
        """Stop and start a broker."""
        self.stop_broker(broker_id)
        self.start_broker(broker_id, seen_by=seen_by)

    def _process_broker_change(self, active: ActiveController | None) -> None:
        if active is not None:
            self.run(process_broker_change(active))

    def create_topic(
        self,
        topic: str,
        assignments: Mapping[int, tuple[int, ...] | ReplicaAssignment],
        *,
        topic_id: uuid.UUID | None = None,
        config: Mapping[str, str] | None = None,
        seen_by: ActiveController | None = None,
    ) -> None:
        """Write a topic node as a tool does; over an existing one: grow it."""
        full = {
            p: a if isinstance(a, ReplicaAssignment) else ReplicaAssignment(a)
            for p, a in assignments.items()
        }
        if config is not None:
            self.put(paths.topic_config(topic), encode_entity_config(config))
        self.put(paths.topic(topic), encode_topic(TopicZNode(topic_id, full)))
        if seen_by is not None:
            self.run(process_topic_change(seen_by))

    def create_led_topic(
        self,
        topic: str,
        assignments: Mapping[int, tuple[int, ...]],
        *,
        leader_epoch: int = 5,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """A topic whose partitions are led by their first replicas, with all of them in sync."""
        self.create_topic(topic, assignments, config=config)
        for partition, replicas in assignments.items():
            tp = TopicPartition(topic, partition)
            self.set_state(tp, replicas[0], replicas, leader_epoch=leader_epoch)

    def set_state(
        self,
        tp: TopicPartition,
        leader: int,
        isr: tuple[int, ...],
        *,
        leader_epoch: int = 0,
        controller_epoch: int = 0,
        leader_recovery_state: int = 0,
    ) -> None:
        """Write a partition's state as its leader or an earlier controller does."""
        state = LeaderAndIsr(leader, leader_epoch, isr, controller_epoch, 0, leader_recovery_state)
        self.put(paths.partition_state(tp), encode_partition_state(state))

    def notify_config_change(self, entity_path: str) -> None:
        """Leave the notification that follows a change of configuration."""
        data = encode_config_change(entity_path)
        self.outsider.multi([Create(paths.config_change_prefix(), data, sequential=True)])

    def mark_for_deletion(self, *topics: str, seen_by: ActiveController | None = None) -> None:
        """Leave the markers that ask for the deletion of topics."""
        for topic in topics:
            self.put(paths.delete_topic(topic))
        if seen_by is not None:
            self.run(process_topic_deletion(seen_by))

    def elect_rival(self, controller_id: int = 1, *, session: InMemoryClient | None = None) -> None:
        """Another process becomes the controller; it has a session of its own if none is given."""
        node = self.zookeeper.get(paths.CONTROLLER_EPOCH)
        epoch = 0 if node is None else int(node.data)
        self.put(paths.CONTROLLER_EPOCH, b"%d" % (epoch + 1))
        if self.zookeeper.get(paths.CONTROLLER) is not None:
            self.delete(paths.CONTROLLER)
        content = b'{"version":1,"brokerid":%d}' % controller_id
        (session or self.outsider).multi([Create(paths.CONTROLLER, content, ephemeral=True)])

    def elect_broker(self, broker_id: int, *, session: InMemoryClient | None = None) -> None:
        """A broker's own controller becomes the controller.

        Args:
            session: That of the broker's process, if it is not the one which is registered.
        """
        self.elect_rival(broker_id, session=session or self._brokers[broker_id])

    # What is in ZooKeeper

    def state(self, tp: TopicPartition) -> LeaderAndIsr | None:
        """The stored state of a partition."""
        path = paths.partition_state(tp)
        node = self.zookeeper.get(path)
        return None if node is None else decode_partition_state(path, node)

    def state_of(self, tp: TopicPartition) -> LeaderAndIsr:
        """The stored state of a partition that has one."""
        state = self.state(tp)
        assert state is not None, tp
        return state

    def led(self, tp: TopicPartition) -> tuple[int, tuple[int, ...]]:
        """Stored leader and ISR of a partition."""
        state = self.state_of(tp)
        return state.leader, state.isr

    def node(self, path: str) -> ZNode:
        """A node that exists."""
        node = self.zookeeper.get(path)
        assert node is not None, path
        return node

    def epoch_of(self, broker_id: int) -> int:
        """Epoch of a broker as its registration has it."""
        return self.node(paths.broker_id(broker_id)).czxid

    def topic(self, topic: str) -> TopicZNode:
        """The stored assignment of a topic."""
        return decode_topic(topic, self.node(paths.topic(topic)).data)

    def exists(self, path: str) -> bool:
        return self.zookeeper.get(path) is not None

    # The controller

    def run(self, process: Coroutine[Effect[Any], Any, T]) -> T:
        return self.driver.run(process)

    def forget(self) -> None:
        """Forget what watches have reported, and what the controller has done and sent so far."""
        driver = self.driver
        driver.client.take_events()
        driver.take_sent()
        for kept in (driver.views, driver.performed, driver.channels):
            kept.clear()

    @property
    def chance(self) -> Chance:
        """Topic ids 2, 3, ... and the numbers of ``draws``, then zeros."""
        return Chance(self._below, self._next_topic_id)

    def _below(self, bound: int) -> int:
        return self.draws.pop(0) % bound if self.draws else 0

    def _next_topic_id(self) -> uuid.UUID:
        self.topic_ids += 1
        return uuid.UUID(int=self.topic_ids + 1)

    def elect(self) -> ActiveController:
        """Become the controller, with nothing loaded."""
        context = self.run(controller_election.elect(self.config, self.log))
        assert context is not None, "the election was lost"
        return ActiveController(context, config=self.config, log=self.log, chance=self.chance)

    def load(self) -> ActiveController:
        """Become the controller with everything loaded and in its initial state.

        Nothing is sent or repaired, unlike by :meth:`fail_over`.
        """
        active = self.elect()
        context = active.context
        context.cluster.inter_broker_protocol = self.driver.inter_broker_protocol
        context.add_live_brokers(self.run(cluster_loading.read_brokers(self.log)).values())
        topics = self.zookeeper.children(paths.BROKER_TOPICS)
        znodes, problems = self.run(cluster_loading.read_topics(topics, self.log))
        partitions = cluster_loading.add_topics(context, znodes)
        context.cluster.note_unreadable(problems)
        self.run(topic_ids.settle(active, [t for t in znodes if not znodes[t].topic_id]))
        self.run(cluster_loading.load_leadership(context, partitions, self.log))
        self.run(active.partitions.startup_states())
        for tp in partitions:
            for broker_id in context.cluster.replicas(tp):
                live = context.is_broker_online(broker_id)
                state = ReplicaState.ONLINE if live else ReplicaState.OFFLINE
                context.set_replica_state(broker_id, tp, state)
        return active

    def fail_over(self) -> ActiveController:
        """Become the controller and bring the cluster into order, as after an election."""
        active = self.elect()
        self.run(failover.on_controller_failover(active))
        return active

    def lead(self) -> ActiveController:
        """Fail over; what that has sent, done and logged is forgotten."""
        active = self.fail_over()
        self.forget()
        self.log.records.clear()
        return active

    def controller(self) -> KafkaController:
        """A controller process before its first event."""
        return KafkaController(self.config, log=self.log, chance=self.chance)

    def process(self, controller: KafkaController, *events: ControllerEvent) -> None:
        """Process events one after the other."""
        for event in events:
            self.run(controller.process(event))

    def active_controller(self) -> KafkaController:
        """A process that has become the controller and heard the news of it."""
        controller = self.controller()
        self.process(controller, Startup(), Eligible())
        self.deliver(controller)
        assert controller.active is not None
        return controller

    def holder(self) -> int | None:
        """Id in ``/controller``."""
        node = self.zookeeper.get(paths.CONTROLLER)
        return None if node is None else decode_controller(node.data)

    def deliver(self, controller: KafkaController, *, at_most: int = 200) -> list[ControllerEvent]:
        """Process what watches report until nothing is left. Returns the events."""
        processed: list[ControllerEvent] = []
        while waiting := self.driver.client.take_events():
            for watched in waiting:
                event = event_of(watched) if isinstance(watched, WatchedEvent) else None
                if event is not None:
                    processed.append(event)
                    assert len(processed) <= at_most, "the events never end"
                    self.process(controller, event)
        return processed


def active_of(controller: KafkaController) -> ActiveController:
    """The term of a process that is the controller."""
    assert controller.active is not None
    return controller.active


def two_partitions(
    *, later_ms: int, began_ms: int | None = None, protocol: tuple[int, int] = NEWEST
) -> tuple[World, KafkaController]:
    """Partitions t-0 on 1, 2 and 3, and t-1 on 2 and 3, at leader epoch 5; some time has passed.

    Args:
        later_ms: What the time is now.
        began_ms: When the controller was elected; None: as the driver has it.
        protocol: inter.broker.protocol.version.
    """
    world = World()
    world.driver.inter_broker_protocol = protocol
    if began_ms is not None:
        world.driver.now_ms = began_ms
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2, 3), 1: (2, 3)})
    controller = world.active_controller()
    world.driver.now_ms = later_ms
    return world, controller


def make_broker(
    broker_id: int,
    *,
    epoch: int = 1,
    rack: str | None = None,
    port: int = 9092,
    registration_version: int = 4,
) -> Broker:
    """A broker with one listener."""
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", f"broker-{broker_id}", port)
    return Broker(
        broker_id, epoch, (endpoint,), rack=rack, registration_version=registration_version
    )


def make_context(
    *broker_ids: int, epoch: int = 1, protocol: tuple[int, int] = NEWEST
) -> ControllerContext:
    """A context with live brokers and nothing else."""
    context = ControllerContext(Term(CONTROLLER_ID, epoch, epoch))
    context.cluster.inter_broker_protocol = protocol
    context.add_live_brokers(make_broker(broker_id) for broker_id in broker_ids)
    return context


def leader_and_isr(sent: Iterable[ControlRequests]) -> dict[int, dict[TopicPartition, bool]]:
    """LeaderAndIsr of all batches: receiver -> partition -> isNew."""
    merged: dict[int, dict[TopicPartition, bool]] = {}
    for requests in sent:
        for broker_id, entries in requests.leader_and_isr.items():
            merged.setdefault(broker_id, {}).update(entries)
    return merged


def stop_replica(
    sent: Iterable[ControlRequests],
) -> list[tuple[int, TopicPartition, int, bool]]:
    """StopReplica of all batches in order: (receiver, partition, leader epoch, delete)."""
    return [
        (broker_id, tp, stop.leader_epoch, stop.delete)
        for requests in sent
        for broker_id, entries in requests.stop_replica.items()
        for tp, stop in entries.items()
    ]
