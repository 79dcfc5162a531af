"""A Kafka cluster in memory, in real time: ZooKeeper and brokers of the simulation in a thread.

Tests of the Kubernetes side run the real controller (:mod:`tests.support.live_controller`) against
it and play the cluster: Kafka's tools that write znodes, brokers that stop and return, a ZooKeeper
that is out of reach, another controller that takes over. The simulation's safety checker follows
every transaction and every request; :meth:`SimulatedCluster.close` raises what it has found.

Everything in the cluster belongs to its thread. Public methods may be called from any other thread;
they return when what they do has happened in ZooKeeper, not when a controller has noticed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.runtime.ports import ConnectionListener
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config, encode_config_change, encode_entity_config
from regent.zk_data.operations import Create, Operation, SetData, Written
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic
from tests.simulation.swarm import Swarm
from tests.simulation.trace import InvariantViolatedError
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.support.simulated_connections import SimulatedConnections

T = TypeVar("T")

STEPS_AT_ONCE = 50
"""Steps of the brokers before somebody else gets a turn."""


class SimulatedCluster:
    """ZooKeeper and brokers, running until :meth:`close`. Use it as a context manager.

    Attributes:
        session_timeout_s: After this time without ZooKeeper, calls of a controller fail.
        paused_brokers: Brokers that do not read what a controller sends them.
        brokers_may_control: Whether the brokers' own controllers contend for ``/controller``.
    """

    def __init__(
        self,
        *,
        brokers: int = 3,
        session_timeout_s: float = 0.6,
        protocol: tuple[int, int] = (2, 8),
    ) -> None:
        self.session_timeout_s = session_timeout_s
        self.paused_brokers: set[int] = set()
        self.brokers_may_control = False
        self.has_recursive_watches = True
        # There is no endpoint here that leaders could ask.
        swarm = Swarm(brokers=brokers, regents=0, protocol=protocol, leaders_ask=False)
        self._world = World("live", swarm=swarm)
        self._world.is_turbulent = False
        self._admin = self._world.connect("admin")
        self._controllers: list[SimulatedConnections] = []
        self._is_reachable = asyncio.Event()
        self._is_reachable.set()
        self._replication_is_due = True
        self._began_at = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._is_closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="simulated cluster")
        self._thread.start()

    def __enter__(self) -> SimulatedCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the thread; raise what the safety checker has found."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
            self._thread.join()
            self._loop.close()
        if self._failure is not None:
            raise InvariantViolatedError(
                f"{self._world.trace.tail()}\n\n{self._failure}"
            ) from self._failure

    # Kafka's tools

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics in ZooKeeper, those being deleted included."""
        return self.call(self._world.zookeeper.children, paths.BROKER_TOPICS)

    @property
    def controller_epoch(self) -> int:
        """Of the last election."""
        return self.call(lambda: self._world.safety.epoch)

    def config(self, topic: str) -> dict[str, str]:
        """The configuration of a topic as it is in ZooKeeper."""
        path = paths.topic_config(topic)
        node = self.call(self._world.zookeeper.get, path)
        return {} if node is None else decode_entity_config(path, node.data)

    def broker_config(self, broker_id: int) -> dict[str, str]:
        """The dynamic configuration of a broker as it is in ZooKeeper."""
        path = paths.broker_config(broker_id)
        node = self.call(self._world.zookeeper.get, path)
        return {} if node is None else decode_entity_config(path, node.data)

    def replicas(self, topic: str) -> list[tuple[int, ...]]:
        """The replicas of each partition of a topic as they are in ZooKeeper."""
        node = self.call(self._world.zookeeper.get, paths.topic(topic))
        assert node is not None, f"no topic {topic}"
        return [
            assigned.replicas for assigned in decode_topic(topic, node.data).assignments.values()
        ]

    def create_topic(
        self,
        topic: str,
        replicas: Sequence[tuple[int, ...]],
        config: Mapping[str, str] | None = None,
    ) -> None:
        """As ``kafka-topics.sh --create --replica-assignment``."""
        znode = TopicZNode(uuid.uuid4(), _assignments(replicas))
        self._write_config_node(topic, config or {})
        self.write(Create(paths.topic(topic), encode_topic(znode)))

    def expect_move(self, topic: str, partition: int, target: tuple[int, ...]) -> None:
        """Somebody is about to ask the controller for a reassignment."""
        tp = TopicPartition(topic, partition)
        targets = self._world.workload.targets
        self.call(lambda: targets.setdefault(tp, {}).update({target: None}))

    def assign(
        self, topic: str, replicas: Sequence[tuple[int, ...]], *, adding: tuple[int, ...] = ()
    ) -> None:
        """Write other partitions or replicas into the topic's node: growth by a tool, or the state
        that a reassignment under another controller leaves.
        """
        node = self.call(self._world.zookeeper.get, paths.topic(topic))
        assert node is not None, f"no topic {topic}"
        znode = TopicZNode(
            decode_topic(topic, node.data).topic_id, _assignments(replicas, adding=adding)
        )
        self.write(SetData(paths.topic(topic), encode_topic(znode), node.version))

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        """As ``kafka-configs.sh --alter``, with everything the topic is to have."""
        self._write_config_node(topic, config)
        change = encode_config_change(f"topics/{topic}")
        self.write(Create(paths.config_change_prefix(), change, sequential=True))

    def delete_topic(self, topic: str) -> None:
        """As ``kafka-topics.sh --delete``: the controller deletes the topic some time later."""
        self.write(Create(paths.delete_topic(topic)))

    def write(self, *operations: Operation) -> None:
        """One transaction of somebody with ``zkCli.sh``."""
        results = self.call(self._admin.multi, operations)
        assert all(isinstance(result, Written) for result in results), (operations, results)

    def _write_config_node(self, topic: str, config: Mapping[str, str]) -> None:
        path, content = paths.topic_config(topic), encode_entity_config(dict(config))
        known = self.call(self._world.zookeeper.get, path) is not None
        self.write(SetData(path, content) if known else Create(path, content))

    # Brokers

    def stop_broker(self, broker_id: int) -> None:
        """A broker ends in order; its registration vanishes at once."""
        self.call(self._world.brokers[broker_id].stop)

    def crash_broker(self, broker_id: int) -> None:
        """A broker dies, and its session has timed out."""
        broker = self._world.brokers[broker_id]

        def crash() -> None:
            assert broker.client is not None
            session_id = broker.client.session_id
            broker.crash()
            self._world.zookeeper.expire(session_id)

        self.call(crash)

    def start_broker(self, broker_id: int) -> None:
        """A broker that has ended starts again."""
        started = self.call(self._world.brokers[broker_id].start)
        assert started, f"broker {broker_id} is running already"

    def pause_broker(self, broker_id: int) -> None:
        """A broker keeps its session and its replicas, but reads no request of a controller."""
        self.call(self.paused_brokers.add, broker_id)

    def resume_broker(self, broker_id: int) -> None:
        """The broker reads what was sent to it meanwhile."""
        self.call(self.paused_brokers.discard, broker_id)

    def shows(self, broker_id: int) -> dict[TopicPartition, LeaderAndIsr]:
        """What a broker answers to Metadata."""
        return self.call(lambda: dict(self._world.brokers[broker_id].metadata))

    # ZooKeeper and controllers

    def lose_zookeeper(self) -> None:
        """No controller reaches ZooKeeper any more. Sessions do not expire: no server counts."""

        def lose() -> None:
            self._is_reachable.clear()
            for connections in self._controllers:
                connections.disconnect()

        self.call(lose)

    def restore_zookeeper(self) -> None:
        """ZooKeeper is back, and every session with it."""

        def restore() -> None:
            self._is_reachable.set()
            for connections in self._controllers:
                connections.reconnect()

        self.call(restore)

    # For connections

    def connect(self, listener: ConnectionListener) -> SimulatedConnections:
        """Connections of a controller; a :data:`~regent.runtime.ports.Connect`."""
        from tests.support.simulated_connections import SimulatedConnections

        connections = SimulatedConnections(
            self, self._world, listener, number=len(self._controllers) + 1
        )
        self.call(self._controllers.append, connections)
        return connections

    def forget(self, connections: SimulatedConnections) -> None:
        """A controller has closed its connections. In the cluster's thread."""
        self._controllers.remove(connections)
        self.elect()

    async def reachable(self) -> None:
        """Wait until ZooKeeper can be reached. In the cluster's thread."""
        await self._is_reachable.wait()

    def elect(self, *, last: SimulatedConnections | None = None) -> None:
        """Elect a replica of Regent if none is, one behind the others. In the cluster's thread."""
        if any(connections.is_elected for connections in self._controllers):
            return
        for connections in sorted(self._controllers, key=lambda each: each is last):
            if connections.can_be_elected:
                connections.begin_term()
                return

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function in the cluster's thread some time; calls keep their order."""
        self._loop.call_soon_threadsafe(self._enter, function, *args)

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function in the cluster's thread; its result."""

        async def enter() -> T:
            return self._enter(function, *args)

        return asyncio.run_coroutine_threadsafe(enter(), self._loop).result()

    def future_of(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine in the cluster's thread."""
        return asyncio.run_coroutine_threadsafe(self._watched(coroutine), self._loop)

    async def _watched(self, awaitable: Awaitable[T]) -> T:
        try:
            return await awaitable
        except InvariantViolatedError as violated:
            self._fail(violated)
            raise
        finally:
            self._wake.set()

    def _enter(self, function: Callable[..., T], *args: Any) -> T:
        self._replication_is_due = True
        try:
            return function(*args)
        except InvariantViolatedError as violated:
            self._fail(violated)
            raise
        finally:
            self._wake.set()

    # The thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        finally:
            asyncio.set_event_loop(None)

    def _end(self) -> None:
        self._is_closing = True
        self._wake.set()

    def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure

    async def _live(self) -> None:
        while not self._is_closing:
            self._wake.clear()
            try:
                is_busy = self._make_steps()
            except Exception as failure:  # noqa: BLE001 - close() raises it
                self._fail(failure)
                is_busy = False
            if is_busy:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._next_alarm_s())

    def _make_steps(self) -> bool:
        """Let time pass, then some steps. Whether more are to be made."""
        elapsed_ms = int((time.monotonic() - self._began_at) * 1000)
        alarm_at_ms = self._world.clock.next_at_ms()
        if alarm_at_ms is not None and alarm_at_ms <= elapsed_ms:
            self._replication_is_due = True
        self._world.clock.advance(max(0, elapsed_ms - self._world.clock.now_ms()))
        return all(self._step() for _ in range(STEPS_AT_ONCE))

    def _step(self) -> bool:
        if self._world.network.act():
            self._replication_is_due = True
            return True
        if self.brokers_may_control and any(rival.act() for rival in self._world.rivals):
            return True
        if self._replication_is_due:
            self._replication_is_due = self._world.replication.act()
        return self._replication_is_due

    def _next_alarm_s(self) -> float | None:
        at_ms = self._world.clock.next_at_ms()
        if at_ms is None:
            return None
        return max(0.0, self._began_at + at_ms / 1000 - time.monotonic()) + 0.001


def _assignments(
    replicas: Sequence[tuple[int, ...]], *, adding: tuple[int, ...] = ()
) -> dict[int, ReplicaAssignment]:
    return {
        partition: ReplicaAssignment(listed, adding_replicas=adding)
        for partition, listed in enumerate(replicas)
    }
