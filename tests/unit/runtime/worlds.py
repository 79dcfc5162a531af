"""Ports that keep what they are sent, and a controller process over the in-memory ZooKeeper."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from regent.admin.topic_admin import Chance
from regent.controller.config import ControllerConfig
from regent.controller.events import ControllerEvent
from regent.controller.kafka_controller import KafkaController
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import ReplicaAssignment
from regent.model.topic_config import BrokerFacts
from regent.protocol.control_requests import ControlRequests
from regent.runtime.interpreter import Interpreter
from regent.runtime.ports import StandbyPort
from regent.simulation.broker_znodes import encode_broker, encode_cluster_id
from regent.simulation.zookeeper import InMemoryClient, InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.operations import Create
from regent.zk_data.topics import TopicZNode, encode_topic
from sandbox.waiting import DEADLINE_S
from tests.simulation.zookeeper_ports import InMemoryZooKeeperPort
from tests.support.reported_facts import facts_of


class KeptChannels:
    """Channels without brokers behind them."""

    def __init__(self) -> None:
        self.open: dict[int, Broker] = {}
        self.standing_by: list[list[int]] = []
        self.sent: list[ControlRequests] = []
        self.protocol = (2, 6)
        self.expected: tuple[int, int] | None = self.protocol
        self._changed: Callable[[], None] = lambda: None

    def update(
        self,
        *,
        opened: Sequence[Broker],
        closed: Sequence[int],
        controller_epoch: int,
        epoch_zk_version: int | None,
    ) -> None:
        for broker_id in closed:
            self.open.pop(broker_id, None)
        self.open |= {broker.broker_id: broker for broker in opened}

    def readdress(self, brokers: Sequence[Broker]) -> None:
        self.open.update((broker.broker_id, broker) for broker in brokers)

    def stand_by(self, brokers: Iterable[Broker]) -> None:
        self.standing_by.append([broker.broker_id for broker in brokers])

    def listen(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def report(self, protocol: tuple[int, int]) -> None:
        """The brokers say what they run."""
        self.expected = self.protocol = protocol
        self._changed()

    def expected_protocol(self) -> tuple[int, int] | None:
        return self.expected

    def send(self, requests: ControlRequests) -> None:
        self.sent.append(requests)

    async def inter_broker_protocol(self) -> tuple[int, int]:
        return self.protocol

    def facts(self, brokers: Sequence[Broker]) -> Sequence[BrokerFacts]:
        return facts_of(brokers)

    def silent(self) -> Sequence[int]:
        return ()

    @property
    def last_batch(self) -> int:
        return len(self.sent)

    def unanswered(self) -> Mapping[int, int]:
        return {}

    def acknowledged(self) -> Mapping[int, int]:
        return dict.fromkeys(self.open, self.last_batch)

    def answers_read(self, *, unread: Callable[[], Collection[int]]) -> None: ...

    def close_all(self) -> None:
        self.open.clear()


class KeptView:
    """Remembers what was published."""

    def __init__(self) -> None:
        self.published: list[frozenset[str] | None] = []
        self.resets = 0

    def publish(self, topics: frozenset[str] | None) -> None:
        self.published.append(topics)

    def reset(self) -> None:
        self.resets += 1


class SilentLog:
    """Nobody listens."""

    traces_state_changes = False

    def info(self, message: str, **fields: object) -> None: ...

    def warning(self, message: str, **fields: object) -> None: ...

    def error(self, message: str, **fields: object) -> None: ...

    def state_change(self, what: object, before: object, after: object, **_: object) -> None: ...


class Process:
    """One controller process with everything in memory."""

    def __init__(self, *, standby: StandbyPort | None = None) -> None:
        self.server = InMemoryZooKeeper()
        self.outsider = self.server.connect()
        self._brokers: dict[int, InMemoryClient] = {}
        for path in paths.PERSISTENT_PATHS:
            self.outsider.multi([Create(path)])
        self.outsider.multi([Create(paths.CLUSTER)])
        self.outsider.multi([Create(paths.CLUSTER_ID, encode_cluster_id("one"))])
        self.channels = KeptChannels()
        self.view = KeptView()
        self.events: list[ControllerEvent] = []
        self.controller = KafkaController(
            ControllerConfig(1_000_000_001),
            log=SilentLog(),
            chance=Chance(lambda _: 0, lambda: uuid.UUID(int=7)),
        )
        self.interpreter = Interpreter(
            zookeeper=InMemoryZooKeeperPort(self.server.connect()),
            channels=self.channels,
            view=self.view,
            enqueue=self._enqueue,
            contend=lambda: None,
            queue_up_again=lambda: None,
            standby=standby,
        )
        self._arrived = asyncio.Event()

    def _enqueue(self, event: ControllerEvent) -> None:
        self.events.append(event)
        self._arrived.set()

    async def until(self, event: ControllerEvent) -> None:
        """Wait until an event was enqueued."""
        async with asyncio.timeout(DEADLINE_S):
            while event not in self.events:
                self._arrived.clear()
                await self._arrived.wait()

    def add_broker(self, broker_id: int) -> None:
        """Register a broker in a session of its own."""
        endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "localhost", 9000 + broker_id)
        content = encode_broker(Broker(broker_id, 0, (endpoint,)), timestamp_ms=1)
        session = self._brokers[broker_id] = self.server.connect()
        session.multi([Create(paths.broker_id(broker_id), content, ephemeral=True)])

    def remove_broker(self, broker_id: int) -> None:
        """End the session of a broker."""
        self._brokers.pop(broker_id).close()

    def add_topic(self, name: str, *replicas: tuple[int, ...]) -> None:
        """Create a topic as Kafka's tools do."""
        assignments = {p: ReplicaAssignment(r) for p, r in enumerate(replicas)}
        self.outsider.multi(
            [Create(paths.topic(name), encode_topic(TopicZNode(None, assignments)))]
        )
