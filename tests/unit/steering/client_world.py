"""A client's loop over the in-memory ZooKeeper, and a controller that does what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regent.admin.commands import Outcome
from regent.controller.commands import Command
from regent.controller.config import ControllerConfig
from regent.controller.reassignment.algebra import cancelled, reassign_to
from regent.controller.view import ClusterView
from regent.model.active_regent import ActiveRegent
from regent.model.cluster import Broker, EndPoint
from regent.model.errors import (
    BrokerQuestionError,
    RecursiveWatchesUnsupportedError,
    UnexpectedZooKeeperError,
)
from regent.model.partition import FoundPartition, LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.protocol.error_codes import INVALID_REPLICA_ASSIGNMENT
from regent.runtime.ports import ConnectionListener
from regent.services.client_loop import ClientLoop
from regent.simulation.broker_znodes import encode_broker, encode_cluster_id
from regent.simulation.zookeeper import Event, InMemoryClient, InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from regent.zk_data.controller import encode_controller, encode_controller_epoch
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SessionState,
    SetData,
    WatchedEvent,
    WriteResult,
    ZNode,
)
from regent.zk_data.topics import TopicZNode, decode_topic, encode_partition_state, encode_topic
from sandbox import wait_until_async
from tests.simulation.zookeeper_ports import InMemoryRecursiveWatches, InMemoryZooKeeperPort
from tests.unit.controller.world import make_broker
from tests.unit.runtime.worlds import KeptChannels

BROKERS = (1, 2, 3)


class WatchesOf35(InMemoryRecursiveWatches):
    """As with ZooKeeper servers before 3.6."""

    async def add(self, paths: Sequence[str]) -> None:
        raise RecursiveWatchesUnsupportedError


class InterruptedPort(InMemoryZooKeeperPort):
    """Something may happen between a reading and what comes of it.

    Attributes:
        after_reading: Called once after the next reading of that path.
        missed: What others have written, and the server that is asked has not applied yet. It
            answers a transaction once it has.
        closed: What may not be read.
        refused: What no transaction may check.
        refusals: How often something could not be read.
    """

    after_reading: tuple[str, Callable[[], None]] | None = None
    missed: Callable[[], None] | None = None
    closed: str | None = None
    refused: str | None = None
    refusals = 0

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        if self.closed is not None and self.closed in paths:
            self.refusals += 1
            raise UnexpectedZooKeeperError("NOAUTH", self.closed)
        found = await super().get_data(paths, watch=watch)
        if self.after_reading is not None and self.after_reading[0] in paths:
            _, happen = self.after_reading
            self.after_reading = None
            happen()
        return found

    async def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> Sequence[WriteResult]:
        if self.missed is not None:
            apply, self.missed = self.missed, None
            apply()
        if guard.path == self.refused:
            raise UnexpectedZooKeeperError("NOAUTH", guard.path)
        return await super().write(operations, guard=guard, divides=divides)


class Connections:
    """Implements :class:`~regent.runtime.ports.ConnectionsPort`, in one loop."""

    def __init__(
        self, client: InMemoryClient, listener: ConnectionListener, *, has_watches: bool
    ) -> None:
        self.client = client
        self.zookeeper = InterruptedPort(client)
        watches = InMemoryRecursiveWatches if has_watches else WatchesOf35
        self.recursive_watches = watches(client)
        self.channels = KeptChannels()
        self.is_session_fenced = False
        self.what_has_ended: str | None = None
        self._listener = listener
        client.on_event(self._take)

    def _take(self, event: Event) -> None:
        if isinstance(event, WatchedEvent):
            self._listener.watch_fired(event)
        else:
            self._listener.session_changed(event)

    def is_fenced(self) -> bool:
        return self.is_session_fenced

    def session_problem(self) -> str | None:
        return None

    def defect(self) -> str | None:
        return self.what_has_ended

    def channel_problems(self) -> Mapping[int, str]:
        return {}

    def uninformed(self) -> Mapping[int, frozenset[TopicPartition]]:
        return {}

    async def start(self) -> None:
        self._listener.session_changed(SessionState.CONNECTED)

    async def close(self) -> None:
        self.client.close()


class Controller:
    """What the broker that is the controller makes of requests: it moves partitions at once.

    Attributes:
        asked: Requests so far.
        endpoints: Endpoints of the controller in the last request.
        failure: Raised by every request.
        loses_answers: Whether requests are carried out and not answered.
        is_silent: Whether requests are neither, for as long as the connection lasts.
    """

    def __init__(self, server: InMemoryZooKeeper) -> None:
        self.asked: list[tuple[int, Any]] = []
        self.endpoints: tuple[EndPoint, ...] = ()
        self.failure: Exception | None = None
        self.loses_answers = False
        self.is_silent = False
        self._is_closed = asyncio.Event()
        self._client = server.connect()

    async def alter_partition_reassignments(
        self,
        broker: Broker,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        found: Mapping[TopicPartition, FoundPartition],
    ) -> dict[TopicPartition, tuple[int, str]]:
        self._note(broker, dict(targets))
        if self.is_silent:
            self._is_closed.clear()
            await self._is_closed.wait()
            raise BrokerQuestionError("the connection was closed")
        answers = {tp: self._move(tp, target) for tp, target in targets.items()}
        if self.loses_answers:
            raise BrokerQuestionError("the broker closed the connection")
        return answers

    async def elect_leaders(
        self, broker: Broker, election_type: int, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, tuple[int, str]]:
        self._note(broker, (election_type, partitions))
        return dict.fromkeys(partitions or (), (0, ""))

    def close(self) -> None:
        """Whoever waits for an answer is told that there will be none."""
        self._is_closed.set()

    def _note(self, broker: Broker, what: Any) -> None:
        self.asked.append((broker.broker_id, what))
        self.endpoints = broker.endpoints
        if self.failure is not None:
            raise self.failure

    def _move(self, tp: TopicPartition, target: tuple[int, ...] | None) -> tuple[int, str]:
        if target is not None and 99 in target:
            return INVALID_REPLICA_ASSIGNMENT, "no such broker"
        (node,) = self._client.get_data([paths.topic(tp.topic)])
        assert node is not None
        znode = decode_topic(tp.topic, node.data)
        current = znode.assignments[tp.partition]
        after = cancelled(current) if target is None else reassign_to(current, target)
        content = TopicZNode(znode.topic_id, {**znode.assignments, tp.partition: after})
        self._client.multi([SetData(paths.topic(tp.topic), encode_topic(content))])
        return 0, ""


class ClientWorld:
    """Three brokers, the first of which is the controller, and the loop of a Regent in client mode.
    Use it as a context manager.

    Attributes:
        admin: Whoever changes ZooKeeper from outside.
    """

    def __init__(
        self,
        *,
        has_watches: bool = True,
        has_controller: bool = True,
        settle_interval_s: float = 3600.0,
        self_check_interval_s: float = 3600.0,
    ) -> None:
        self.server = InMemoryZooKeeper()
        self.admin = self.server.connect()
        for path in (*paths.PERSISTENT_PATHS, paths.CLUSTER):
            self.admin.multi([Create(path)])
        self.admin.multi([Create(paths.CLUSTER_ID, encode_cluster_id("one"))])
        for broker_id in BROKERS:
            self.register(broker_id)
        if has_controller:
            self.elect(1, epoch=7)
        self.controller = Controller(self.server)
        self.connections: Connections
        self.loop = ClientLoop(
            config=ControllerConfig(1_000_000_001),
            connect=lambda listener: self._connect(listener, has_watches=has_watches),
            admin=self.controller,
            poll_interval_s=0.05,
            retry_pause_s=0.05,
            settle_interval_s=settle_interval_s,
            self_check_interval_s=self_check_interval_s,
        )
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen = 0

    def _connect(self, listener: ConnectionListener, *, has_watches: bool) -> Any:
        self.connections = Connections(self.server.connect(), listener, has_watches=has_watches)
        return self.connections

    async def __aenter__(self) -> ClientWorld:
        self._task = asyncio.create_task(self.loop.run_until(self._stop))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._stop.set()
        await self._task

    @property
    def view(self) -> ClusterView:
        return self.loop.publisher.view

    async def until(self, condition: Callable[[], Any]) -> None:
        def is_so() -> Any:
            assert self._task is not None
            assert not self._task.done(), self._task.result()
            return condition()

        await wait_until_async(is_so, describe="the client", interval_s=0.01)

    async def known(self) -> None:
        """Wait until the client knows the cluster, and what the brokers run."""
        await self.until(lambda: self.view.is_complete)
        for broker_id, broker in self.view.brokers.items():
            facts = BrokerFacts(
                broker_id=broker_id, versions=((3, 9),), settings={}, has_answered=True
            )
            self.loop.broker_answered(broker, facts)
        await self.until(lambda: all(facts.has_answered for facts in self.view.broker_facts))

    async def submit(self, *commands: Command) -> Sequence[Outcome]:
        answer: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
        self.loop.submit(commands, answer.set_result)
        return await answer

    # What others do

    def register(self, broker_id: int) -> None:
        content = encode_broker(make_broker(broker_id), timestamp_ms=0)
        self.admin.multi([Create(paths.broker_id(broker_id), content)])

    def elect(self, controller_id: int, *, epoch: int, regent: ActiveRegent | None = None) -> None:
        """A broker becomes the controller, or a Regent."""
        path = None if regent is None else "/regent/election"
        holder = encode_controller(
            controller_id,
            0,
            election_path=path,
            resources=None if regent is None else regent.resources,
            endpoint=None if regent is None else regent.endpoint,
        )
        node = self.server.get(paths.CONTROLLER_EPOCH)
        content = encode_controller_epoch(epoch)
        if self.server.get(paths.CONTROLLER) is not None:
            self.admin.multi([Delete(paths.CONTROLLER)])
        self.admin.multi(
            [
                Create(paths.CONTROLLER, holder),
                Create(paths.CONTROLLER_EPOCH, content)
                if node is None
                else SetData(paths.CONTROLLER_EPOCH, content),
            ]
        )

    def create_topic(self, name: str, *replicas: tuple[int, ...]) -> None:
        assignments = {p: ReplicaAssignment(r) for p, r in enumerate(replicas)}
        created: list[Operation] = [
            Create(paths.topic(name), encode_topic(TopicZNode(None, assignments))),
            Create(paths.topic_partitions(name)),
        ]
        for partition, each in enumerate(replicas):
            created += _first_state(TopicPartition(name, partition), each)
        self.admin.multi(created)

    def see_topic(self, name: str) -> None:
        """The controller sees a topic that others have created, and elects first leaders."""
        assignments = self.topic(name).assignments
        created: list[Operation] = [Create(paths.topic_partitions(name))]
        for partition, assignment in assignments.items():
            created += _first_state(TopicPartition(name, partition), assignment.replicas)
        self.admin.multi(created)

    def arrive(self, name: str, partition: int) -> None:
        """The controller completes a reassignment."""
        znode = self.topic(name)
        target = znode.assignments[partition].target_replicas
        after = {**znode.assignments, partition: ReplicaAssignment(target)}
        self.admin.multi(
            [SetData(paths.topic(name), encode_topic(TopicZNode(znode.topic_id, after)))]
        )

    def topic(self, name: str) -> TopicZNode:
        node = self.server.get(paths.topic(name))
        assert node is not None, f"no topic {name}"
        return decode_topic(name, node.data)

    def config(self, path: str) -> dict[str, str]:
        node = self.server.get(path)
        return {} if node is None else decode_entity_config(path, node.data)


def _first_state(tp: TopicPartition, replicas: tuple[int, ...]) -> list[Operation]:
    state = encode_partition_state(LeaderAndIsr(replicas[0], 0, replicas, 7, 0))
    return [Create(paths.topic_partition(tp)), Create(paths.partition_state(tp), state)]
