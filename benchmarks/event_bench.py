"""A controller with its event queue, gauges and view, in a cluster of a size, and nothing else.

ZooKeeper is in the same process, its time is taken off, and the channels lead nowhere: what an
event costs here is the controller's own work.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence

from benchmarks.cluster import BROKERS, CONTROLLER_EPOCH, Cluster
from benchmarks.errors import BenchmarkError
from benchmarks.memory_zookeeper import MemoryZooKeeper
from regent.admin.topic_admin import Chance
from regent.controller import events as e
from regent.controller.config import ControllerConfig
from regent.controller.controller_state import ControllerState
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.context import ControllerContext
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.observability.metrics import gauges_of
from regent.protocol.control_requests import ControlRequests
from regent.runtime.collector import Collector
from regent.runtime.controller_event_manager import ControllerEventManager
from regent.runtime.interpreter import Interpreter
from regent.runtime.view_publisher import ViewPublisher
from regent.simulation.broker_znodes import encode_broker, encode_cluster_id
from regent.zk_data import paths
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic

SMALL_BROKER = BROKERS + 1
SMALL_TOPIC = "small"
SMALL_PARTITIONS = 10
_TIMEOUT_S = 300.0


class _Nowhere:
    """Channels without brokers."""

    def update(
        self,
        *,
        opened: Sequence[Broker],
        closed: Sequence[int],
        controller_epoch: int,
        epoch_zk_version: int | None,
    ) -> None: ...

    def readdress(self, brokers: Sequence[Broker]) -> None: ...

    def stand_by(self, brokers: Iterable[Broker]) -> None: ...

    def listen(self, changed: Callable[[], None]) -> None: ...

    def expected_protocol(self) -> tuple[int, int]:
        return 2, 6

    def send(self, requests: ControlRequests) -> None: ...

    async def inter_broker_protocol(self) -> tuple[int, int]:
        return 2, 6

    def facts(self, brokers: Sequence[Broker]) -> Sequence[BrokerFacts]:
        return [
            BrokerFacts(broker_id=each.broker_id, settings={}, has_answered=True)
            for each in brokers
        ]

    last_batch = 0

    def unanswered(self) -> Mapping[int, int]:
        return {}

    def acknowledged(self) -> Mapping[int, int]:
        return {}

    def answers_read(self, *, unread: Callable[[], Collection[int]]) -> None: ...

    def silent(self) -> Sequence[int]:
        return ()

    def close_all(self) -> None: ...


class _Silence:
    """A log that is not read."""

    traces_state_changes = False

    def info(self, message: str, **fields: object) -> None: ...

    def warning(self, message: str, **fields: object) -> None: ...

    def error(self, message: str, **fields: object) -> None:
        raise BenchmarkError(f"{message} {fields}")

    def state_change(self, what: object, before: object, after: object, **_: object) -> None: ...


class Bench:
    """A controller of a cluster of a size.

    Attributes:
        failover_ms: Processor time of the failover, up to the first view.
    """

    def __init__(self, size: int) -> None:
        self.cluster = Cluster(size)
        self.zookeeper = MemoryZooKeeper(self._given)
        self._states: dict[tuple[int, ...], bytes] = {}
        self.controller = KafkaController(
            ControllerConfig(1_000_000_001),
            log=_Silence(),
            chance=Chance(lambda _: 0, uuid.uuid4),
        )
        self.manager = ControllerEventManager(self.controller, observer=self, collector=Collector())
        self.publisher = ViewPublisher(self.controller)
        self.interpreter = Interpreter(
            zookeeper=self.zookeeper,
            channels=_Nowhere(),
            view=self.publisher,
            enqueue=self.manager.put,
            contend=lambda: None,
            queue_up_again=lambda: None,
        )
        self.failover_ms = 0.0
        self._processed = asyncio.Event()
        self._published = asyncio.Event()
        self.publisher.subscribe(lambda _: self._published.set())
        self.zookeeper.put(paths.CLUSTER_ID, encode_cluster_id("events"))

    @property
    def context(self) -> ControllerContext:
        """What the controller knows."""
        active = self.controller.active
        assert active is not None
        return active.context

    # The cluster in ZooKeeper

    def _given(self, path: str) -> bytes | None:
        tp = paths.partition_of_state(path)
        if tp is not None:
            partition = self.cluster.states.get(tp)
            return None if partition is None else self._state(partition.state)
        topic = paths.topic_of(path)
        if topic in self.cluster.topics and path == paths.topic(topic):
            return encode_topic(TopicZNode(None, self.cluster.assignments(topic)))
        return None

    def _state(self, state: LeaderAndIsr) -> bytes:
        content = self._states.get(state.isr)
        if content is None:
            content = self._states[state.isr] = encode_partition_state(state)
        return content

    def fill(self) -> None:
        """Register the brokers; one of them hosts a few partitions only."""
        for path in paths.PERSISTENT_PATHS:
            self.zookeeper.put(path)
        self.zookeeper.list(paths.BROKER_TOPICS, list(self.cluster.topics))
        for broker_id in (*self.cluster.broker_ids, SMALL_BROKER):
            self.register(broker_id)
        replicas = ReplicaAssignment((1, SMALL_BROKER))
        assignments = dict.fromkeys(range(SMALL_PARTITIONS), replicas)
        self.zookeeper.put(paths.topic(SMALL_TOPIC), encode_topic(TopicZNode(None, assignments)))
        for number in assignments:
            self.put_state(TopicPartition(SMALL_TOPIC, number), replicas.replicas)

    def register(self, broker_id: int) -> None:
        """A broker starts."""
        endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "localhost", 9000 + broker_id)
        broker = Broker(broker_id, 0, (endpoint,), registration_version=4)
        self.zookeeper.put(paths.broker_id(broker_id), encode_broker(broker, timestamp_ms=0))

    def put_state(self, tp: TopicPartition, isr: tuple[int, ...], *, leader_epoch: int = 0) -> None:
        """A leader, the first of the ISR, writes the state of a partition."""
        state = LeaderAndIsr(isr[0], leader_epoch, isr, CONTROLLER_EPOCH, 0)
        self.zookeeper.put(paths.partition_state(tp), encode_partition_state(state))

    # Running

    def processed(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None:
        """What the service does after each event."""
        active = self.controller.active
        is_active = gauges_of(None if active is None else active.context).active_controller_count
        if is_active and not self.manager.queue_size:
            self._processed.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With the event queue and the view at work, once the failover is over."""
        tasks = [
            asyncio.create_task(self.manager.run(self.interpreter)),
            asyncio.create_task(self.publisher.run()),
        ]
        try:
            self.failover_ms = await self.cost(e.Eligible())
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.interpreter.close()
            Collector().population_changed(is_active=False)

    async def view_cost(self, topic: str) -> float:
        """Milliseconds of processor time until a topic is published again."""
        self._published.clear()
        before = time.thread_time_ns()
        self.publisher.publish(frozenset({topic}))
        async with asyncio.timeout(_TIMEOUT_S):
            await self._published.wait()
        return (time.thread_time_ns() - before) / 1e6

    async def cost(self, *events: e.ControllerEvent, publishes: bool = True) -> float:
        """Milliseconds of processor time until events are processed, and a new view is there.

        An event of the controller's timers that comes meanwhile is counted, too.
        """
        self._processed.clear()
        self._published.clear()
        before, others = time.thread_time_ns(), self.zookeeper.spent_ns
        for event in events:
            self.manager.put(event)
        async with asyncio.timeout(_TIMEOUT_S):
            await self._processed.wait()
            if publishes:
                await self._published.wait()
        took = time.thread_time_ns() - before
        if self.controller.active is None:
            raise BenchmarkError("the controller has resigned")
        return (took - (self.zookeeper.spent_ns - others)) / 1e6
