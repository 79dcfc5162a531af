"""Events: what it costs the controller that one thing changes, in clusters of growing size.

The core runs with its event queue, its gauges and its view over a ZooKeeper in the same process and
channels that lead nowhere; the time of that ZooKeeper is taken off. So the figures are the
controller's own work, from the event in the queue to the new view: they must not grow with the
cluster.
"""

import asyncio
import contextlib
import gc
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from rich.console import Console

from benchmarks.benchmark import REGENT, Benchmark, Options, Result, Table
from benchmarks.cluster import BROKERS, CONTROLLER_EPOCH, Cluster
from benchmarks.errors import BenchmarkError
from benchmarks.memory_zookeeper import MemoryZooKeeper
from regent.controller import events as e
from regent.controller.active_controller import Chance
from regent.controller.commands import CreateTopic
from regent.controller.config import ControllerConfig
from regent.controller.events import ControllerState
from regent.controller.kafka_controller import KafkaController
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.observability.metrics import gauges_of
from regent.protocol.control_requests import (
    ControlRequests,
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from regent.runtime.collector import Collector
from regent.runtime.controller_event_manager import ControllerEventManager
from regent.runtime.interpreter import Interpreter
from regent.runtime.view_publisher import ViewPublisher
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic
from tests.support.broker_znodes import (
    encode_broker,
    encode_cluster_id,
    encode_isr_change_notification,
)

SIZES = (10_000, 100_000)
"""Clusters that are measured besides the one that was asked for, if they are smaller."""

SMALL_BROKER = BROKERS + 1
SMALL_TOPIC = "small"
SMALL_PARTITIONS = 10
_TIMEOUT_S = 300.0


class _Nowhere:
    """Channels without brokers."""

    def update(
        self, *, opened: Sequence[Broker], closed: Sequence[int], controller_epoch: int
    ) -> None: ...

    def send(self, requests: ControlRequests) -> None: ...

    async def inter_broker_protocol(self) -> tuple[int, int]:
        return 2, 6

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
    """A controller of a cluster of a size, and the things that change in it."""

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
        )
        self._processed = asyncio.Event()
        self._published = asyncio.Event()
        self.publisher.subscribe(lambda _: self._published.set())
        self._number = 0
        self.zookeeper.put(paths.CLUSTER_ID, encode_cluster_id("events"))

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

    def put_state(self, tp: TopicPartition, isr: tuple[int, ...]) -> None:
        """A leader writes the state of a partition."""
        state = LeaderAndIsr(isr[0], 0, isr, CONTROLLER_EPOCH, 0)
        self.zookeeper.put(paths.partition_state(tp), encode_partition_state(state))

    # Running

    def processed(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None:
        """What the service does after each event."""
        active = self.controller.active
        if gauges_of(None if active is None else active.context).active_controller_count:
            self._processed.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With the event queue and the view at work, once the failover is over."""
        tasks = [
            asyncio.create_task(self.manager.run(self.interpreter)),
            asyncio.create_task(self.publisher.run()),
        ]
        try:
            await self.cost(e.Eligible())
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.interpreter.close()
            Collector().population_changed(is_active=False)

    async def cost(self, *events: e.ControllerEvent, publishes: bool = True) -> float:
        """Milliseconds of processor time until events are processed, and a new view is there."""
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
        if self.manager.queue_size or self.controller.active is None:
            raise BenchmarkError("an event was not processed as it should be")
        return (took - (self.zookeeper.spent_ns - others)) / 1e6

    # What happens

    def _fresh(self) -> str:
        self._number += 1
        return f"new-{self._number:05d}"

    def _some_partition(self) -> TopicPartition:
        self._number += 1
        topics = list(self.cluster.topics)
        return TopicPartition(topics[self._number * 7919 % len(topics)], self._number % 50)

    async def isr_change(self) -> float:
        """A follower falls out of the ISR of one partition."""
        tp = self._some_partition()
        self.put_state(tp, self.cluster.states[tp].replicas[:2])
        notification = paths.isr_change_notification(f"isr_change_{self._number:010d}")
        self.zookeeper.put(notification, encode_isr_change_notification([tp]))
        return await self.cost(e.IsrChangeNotification())

    async def command(self) -> float:
        """A custom resource asks for a topic; the topic itself is created by the next event."""
        topic = self._fresh()
        answered: list[Any] = []
        took = await self.cost(
            e.CommandsReceived((CreateTopic(topic, 1, 3),), reply_to=answered.append),
            publishes=False,
        )
        if len(answered) != 1:
            raise BenchmarkError("the command was not answered")
        self.zookeeper.remove(paths.topic(topic))
        return took

    async def creation(self) -> float:
        """A topic of one partition appears."""
        znode = TopicZNode(None, {0: ReplicaAssignment((1, 2, 3))})
        topic = self._fresh()
        self.zookeeper.put(paths.topic(topic), encode_topic(znode))
        self.zookeeper.put(paths.topic_config(topic), encode_entity_config({}))
        return await self.cost(e.TopicChange())

    async def growth(self) -> float:
        """A topic of one partition grows by another."""
        await self.creation()
        topic = f"new-{self._number:05d}"
        znode = TopicZNode(None, dict.fromkeys(range(2), ReplicaAssignment((1, 2, 3))))
        self.zookeeper.put(paths.topic(topic), encode_topic(znode))
        return await self.cost(e.PartitionModifications((topic,)))

    async def deletion(self) -> float:
        """A topic of one partition is deleted: the marker, and the answers of its brokers."""
        await self.creation()
        topic = f"new-{self._number:05d}"
        self.zookeeper.put(paths.delete_topic(topic))
        took = await self.cost(e.TopicDeletion())
        asked = {TopicPartition(topic, 0): StopReplicaPartition(-2, delete=True)}
        answers = [
            e.StopReplicaResponseReceived((StopReplicaResponse(broker_id, 0, {}, asked),))
            for broker_id in (1, 2, 3)
        ]
        took += await self.cost(*answers)
        if topic in self.publisher.view.topics:
            raise BenchmarkError("the topic was not deleted")
        return took

    async def stop(self) -> float:
        """A broker with ten replicas stops (and starts again, which is not counted here)."""
        took, _ = await self._bounce()
        return took

    async def start(self) -> float:
        """It starts again."""
        _, took = await self._bounce()
        return took

    async def _bounce(self) -> tuple[float, float]:
        self.zookeeper.remove(paths.broker_id(SMALL_BROKER))
        stopped = await self.cost(e.BrokerChange())
        self.register(SMALL_BROKER)
        return stopped, await self.cost(e.BrokerChange())

    async def update_metadata_answer(self) -> float:
        """A broker answers an UpdateMetadata."""
        answer = UpdateMetadataResponse(1, 0)
        return await self.cost(e.UpdateMetadataResponseReceived((answer,)), publishes=False)

    async def leader_and_isr_answer(self) -> float:
        """A broker answers a LeaderAndIsr of one partition."""
        answer = LeaderAndIsrResponse(1, 0, {}, {self._some_partition(): False})
        return await self.cost(e.LeaderAndIsrResponseReceived((answer,)), publishes=False)

    async def publication(self) -> float:
        """A topic of 50 partitions is published again, and nothing else happens."""
        topic = self._some_partition().topic
        self._processed.set()
        self._published.clear()
        before = time.thread_time_ns()
        self.publisher.publish(frozenset({topic}))
        async with asyncio.timeout(_TIMEOUT_S):
            await self._published.wait()
        return (time.thread_time_ns() - before) / 1e6


_EVENTS: dict[str, Callable[[Bench], Any]] = {
    "ISR change of one partition": Bench.isr_change,
    "creation of a topic, 1 partition": Bench.creation,
    "growth of a topic by 1 partition": Bench.growth,
    "deletion of a topic, 1 partition": Bench.deletion,
    "command to create a topic": Bench.command,
    "stop of a broker with 10 replicas": Bench.stop,
    "answer to UpdateMetadata": Bench.update_metadata_answer,
    "answer to LeaderAndIsr, 1 partition": Bench.leader_and_isr_answer,
    "view of one topic, 50 partitions": Bench.publication,
    "start of a broker with 10 replicas": Bench.start,
}


def run(options: Options, console: Console) -> Result:
    """Measure each kind of event in each size of cluster."""
    sizes = [*(size for size in SIZES if size < options.size), options.size]
    samples = options.rounds * options.samples
    medians: dict[int, dict[str, float]] = {}
    for size in sizes:
        began = time.monotonic()
        medians[size] = asyncio.run(_measure(size, samples))
        gc.collect()
        console.print(f"{size:,} partitions: {time.monotonic() - began:.1f} s")
    return Result(
        seconds={REGENT: [ms / 1000 for ms in medians[options.size].values()]},
        tables=[
            Table(
                f"Processor time of one event, medians of {samples}, milliseconds",
                ("partitions", *(f"{size:,}" for size in sizes)),
                [(name, *(f"{medians[size][name]:.2f}" for size in sizes)) for name in _EVENTS],
            )
        ],
        notes=list(_notes()),
        details={"milliseconds": {str(size): found for size, found in medians.items()}},
    )


def _notes() -> Iterator[str]:
    yield "The controller's own work, from the event to the new view, without ZooKeeper."
    yield (
        "Two rows hold something that grows by its nature: topics appear in a list of all of them"
        " (ZooKeeper gives no difference), and a broker that starts is sent every partition."
    )


async def _measure(size: int, samples: int) -> dict[str, float]:
    bench = Bench(size)
    bench.fill()
    medians: dict[str, float] = {}
    async with bench.running():
        for name, happen in _EVENTS.items():
            await happen(bench)
            medians[name] = statistics.median([await happen(bench) for _ in range(samples)])
    return medians


BENCHMARK = Benchmark(
    name="events",
    summary="What one event costs in clusters of growing size.",
    unit="partitions in the largest cluster",
    default_size=1_000_000,
    run=run,
    default_rounds=3,
    default_samples=10,
)
