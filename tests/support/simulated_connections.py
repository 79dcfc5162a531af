"""A controller's connections to a :class:`~tests.support.simulated_cluster.SimulatedCluster`.

They join two threads: the cluster's, which owns the ZooKeeper client and the channels' queues, and
the controller's, in which the ports are called and everything is reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from regent.model.cluster import Broker
from regent.model.errors import (
    RecursiveWatchesUnsupportedError,
    SessionExpiredError,
    ZooKeeperUnavailableError,
)
from regent.model.partition import TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.protocol.control_requests import (
    ControlRequests,
    ControlResponse,
    UpdateMetadataResponse,
)
from regent.protocol.error_codes import NONE
from regent.protocol.metadata_updates import Metadata, SharedMetadata
from regent.protocol.pending_requests import PendingRequests, receivers_of
from regent.runtime.ports import ConnectionListener
from regent.simulation.zookeeper import Event, InMemoryClient
from regent.zk_data.operations import (
    Check,
    Create,
    Operation,
    SessionState,
    WatchedEvent,
    WatchedEventType,
    WriteResult,
    ZNode,
)
from tests.simulation.network import Channel
from tests.simulation.world import World
from tests.simulation.zookeeper_ports import InMemoryRecursiveWatches, InMemoryZooKeeperPort
from tests.support.reported_facts import facts_of
from tests.support.simulated_cluster import SimulatedCluster

FENCED_AFTER = 2 / 3
"""As in ``regent.zookeeper.session``: this part of the session timeout without an answer."""


class SimulatedConnections:
    """Implements :class:`~regent.runtime.ports.ConnectionsPort`.

    Everything but the methods of the port belongs to the cluster's thread.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        world: World,
        listener: ConnectionListener,
        *,
        number: int,
    ) -> None:
        self.name = f"live-{number}"
        self.may_be_elected = True
        self.why_not_elected: str | None = None
        self.why_not_connected: str | None = None
        self.what_has_ended: str | None = None
        self.out_of_reach: Mapping[int, frozenset[TopicPartition]] = {}
        self.contends = False
        self.is_elected = False
        self.zookeeper = _ZooKeeper(cluster, self)
        self.recursive_watches = _RecursiveWatches(cluster, self)
        self.channels = _Channels(cluster, world, self.name, listener)
        self._cluster = cluster
        self._world = world
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._client: InMemoryClient | None = None
        self._port: InMemoryZooKeeperPort | None = None
        self._recursive: InMemoryRecursiveWatches | None = None
        self._is_fenced = True
        self._losses = 0
        self._lost_at = float("-inf")

    # ConnectionsPort

    def is_fenced(self) -> bool:
        return self._is_fenced

    def last_contact(self) -> float:
        return time.monotonic() if self.is_connected else self._lost_at

    def session_problem(self) -> str | None:
        return self.why_not_connected

    def election_problem(self) -> str | None:
        return self.why_not_elected

    def defect(self) -> str | None:
        return self.what_has_ended

    def queue_sizes(self) -> Mapping[int, int]:
        return self.channels.queue_sizes()

    def channel_problems(self) -> Mapping[int, str]:
        return dict.fromkeys(self.out_of_reach, "no route to host")

    def uninformed(self) -> Mapping[int, frozenset[TopicPartition]]:
        return self.out_of_reach

    async def start(self) -> None:
        await asyncio.wrap_future(self._cluster.future_of(self._open_session()))

    def contend(self) -> None:
        self._cluster.post(self._set_contending)

    def queue_up_again(self) -> None:
        self._cluster.post(self._give_way_to_others)

    async def close(self) -> None:
        self.channels.close_all()
        await asyncio.wrap_future(self._cluster.future_of(self._close_session()))

    # The cluster's thread

    @property
    def is_connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    @property
    def can_be_elected(self) -> bool:
        return self.contends and self.may_be_elected and self.is_connected

    def port(self) -> InMemoryZooKeeperPort:
        """ZooKeeper under the current session."""
        if self._port is None:
            raise SessionExpiredError("there is no ZooKeeper session")
        return self._port

    def recursive_port(self) -> InMemoryRecursiveWatches:
        """Recursive watches under the current session."""
        if self._recursive is None:
            raise SessionExpiredError("there is no ZooKeeper session")
        return self._recursive

    async def _open_session(self) -> None:
        await self._cluster.reachable()
        self._client = self._world.connect(self.name)
        self._port = InMemoryZooKeeperPort(self._client)
        self._recursive = InMemoryRecursiveWatches(self._client)
        self._recursive.listen(partial(self._report, self.recursive_watches.notify))
        self._client.on_event(self._take)
        self._is_fenced = False
        self._report(self._listener.session_changed, SessionState.CONNECTED)

    async def _close_session(self) -> None:
        self.is_elected = False
        if self._client is not None:
            self._client.close()
        self._cluster.forget(self)

    def disconnect(self) -> None:
        """Lose the connection; some time later the session must not be trusted any more."""
        if self._client is None:
            return
        self._losses += 1
        self._lost_at = time.monotonic()
        loss = self._losses
        self._client.disconnect()

        def fence() -> None:
            if loss == self._losses and not self.is_connected:
                self._is_fenced = True
                self.end_term()

        self._world.clock.after(int(self._cluster.session_timeout_s * FENCED_AFTER * 1000), fence)

    def reconnect(self) -> None:
        """Find ZooKeeper again, under the old session or a new one."""
        if self._client is None:
            return
        self._client.reconnect()
        self._world.owns(self._client, self.name)
        self._is_fenced = False
        self._cluster.elect()

    def expire(self) -> None:
        """The servers end the session; it is noticed at once, and another one is opened."""
        assert self._client is not None
        self._world.zookeeper.expire(self._client.session_id)
        self.reconnect()

    def _set_contending(self) -> None:
        self.contends = True
        self._cluster.elect()

    def _give_way_to_others(self) -> None:
        if self.is_elected:
            self.end_term()
            self._cluster.elect(last=self)

    def queue_up(self, election_path: str) -> None:
        """Have a place in the replicas' queue, behind the others. Their election here is without:
        it is for who looks into the queue."""
        assert self._client is not None
        place = Create(f"{election_path}/{self.name}-__lock__", ephemeral=True, sequential=True)
        self._client.multi([place])

    def set_may_be_elected(self, may_be_elected: bool) -> None:
        """Contend from now on, or end the term and leave the election to others."""
        self.may_be_elected = may_be_elected
        if not may_be_elected:
            self.end_term()
        self._cluster.elect()

    def begin_term(self) -> None:
        self.is_elected = True
        self._report(self._listener.elected)

    def end_term(self) -> None:
        if self.is_elected:
            self.is_elected = False
            self._report(self._listener.election_lost)

    def report_settings(self, broker: Broker, settings: Mapping[str, str]) -> None:
        """A broker says how it is set up by now."""
        (facts,) = facts_of([broker], {broker.broker_id: settings})
        self._report(self._listener.broker_answered, broker, facts)

    def _take(self, event: Event) -> None:
        if isinstance(event, WatchedEvent):
            self._report(self._listener.watch_fired, event)
            return
        self._report(self._listener.session_changed, event)
        if event is SessionState.EXPIRED:
            self.end_term()

    def _report(self, function: Callable[..., None], *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the controller's loop has ended
            self._loop.call_soon_threadsafe(function, *args)


class _ZooKeeper:
    """``ZooKeeperPort``: calls wait for the connection as long as a session lives."""

    def __init__(self, cluster: SimulatedCluster, connections: SimulatedConnections) -> None:
        self._cluster = cluster
        self._connections = connections

    @property
    def session_id(self) -> int:
        return self._cluster.call(lambda: self._connections.port().session_id)

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        return await self._ask("get_data", paths, watch=watch)  # type: ignore[no-any-return]

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        return await self._ask("get_children", paths, watch=watch)  # type: ignore[no-any-return]

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> Sequence[bool]:
        return await self._ask("exists", paths, watch=watch)  # type: ignore[no-any-return]

    async def multi(self, operations: Sequence[Operation]) -> Sequence[WriteResult]:
        return await self._ask("multi", operations)  # type: ignore[no-any-return]

    async def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> Sequence[WriteResult]:
        return await self._ask("write", operations, guard=guard, divides=divides)  # type: ignore[no-any-return]

    async def _ask(self, method: str, *args: Any, **options: Any) -> Any:
        async def ask() -> Any:
            call = getattr(self._connections.port(), method)
            try:
                async with asyncio.timeout(self._cluster.session_timeout_s):
                    return await call(*args, **options)
            except TimeoutError as error:
                raise ZooKeeperUnavailableError("no ZooKeeper server answers") from error

        return await asyncio.wrap_future(self._cluster.future_of(ask()))


class _RecursiveWatches:
    """``RecursiveWatchesPort``."""

    def __init__(self, cluster: SimulatedCluster, connections: SimulatedConnections) -> None:
        self._cluster = cluster
        self._connections = connections
        self._listener: Callable[[], None] | None = None

    def listen(self, listener: Callable[[], None]) -> None:
        self._listener = listener

    def notify(self) -> None:
        """In the controller's thread: there is something to take."""
        if self._listener is not None:
            self._listener()

    async def add(self, paths: Sequence[str]) -> None:
        if not self._cluster.has_recursive_watches:
            raise RecursiveWatchesUnsupportedError
        await self._ask("add", paths)

    async def restore(self) -> None:
        await self._ask("restore")

    async def remove(self, paths: Sequence[str]) -> None:
        await self._ask("remove", paths)

    def take(self) -> Mapping[str, WatchedEventType]:
        return self._cluster.call(lambda: self._connections.recursive_port().take())

    async def _ask(self, method: str, *args: Any) -> None:
        async def ask() -> None:
            await getattr(self._connections.recursive_port(), method)(*args)

        await asyncio.wrap_future(self._cluster.future_of(ask()))


class _Channels:
    """``BrokerChannelsPort``. ``_open`` belongs to the controller's thread, the queues do not."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        world: World,
        name: str,
        listener: ConnectionListener,
    ) -> None:
        self._cluster = cluster
        self._world = world
        self._name = name
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, _Sender] = {}
        self._shared = SharedMetadata()
        self.last_batch = 0

    def update(
        self,
        *,
        opened: Sequence[Broker],
        closed: Sequence[int],
        controller_epoch: int,
        epoch_zk_version: int | None,
    ) -> None:
        for broker_id in closed:
            self._close(broker_id)
        for broker in opened:
            self._close(broker.broker_id)
            pending = PendingRequests(broker.broker_id, shared=self._shared)
            sender = _Sender(self._name, pending, broker.broker_id, self._cluster, self._responded)
            self._open[broker.broker_id] = sender
            self._cluster.post(sender.open, self._world)

    def readdress(self, brokers: Sequence[Broker]) -> None:
        """Nothing has an address here."""

    def stand_by(self, brokers: Iterable[Broker]) -> None:
        """Opening one takes no time here."""

    def listen(self, changed: Callable[[], None]) -> None:
        """The protocol version does not change."""

    def expected_protocol(self) -> tuple[int, int]:
        return self._world.protocol

    def send(self, requests: ControlRequests) -> None:
        self._cluster.post(self._world.safety.requests.sent, self._name, requests)
        metadata = self._shared.of(requests)
        self.last_batch += 1
        for broker_id in receivers_of(requests):
            sender = self._open.get(broker_id)
            if sender is not None and broker_id in requests.brokers:
                if requests.leader_and_isr.get(broker_id):
                    sender.awaited.append(self.last_batch)
                if broker_id in requests.update_metadata_receivers:
                    sender.metadata.append(self.last_batch)
                self._cluster.post(lambda s=sender, n=self.last_batch: s.add(requests, metadata, n))

    async def inter_broker_protocol(self) -> tuple[int, int]:
        return self._world.protocol

    def facts(self, brokers: Sequence[Broker]) -> Sequence[BrokerFacts]:
        return facts_of(brokers)

    def silent(self) -> Sequence[int]:
        return ()

    def unanswered(self) -> Mapping[int, int]:
        return {b: sender.awaited[0] for b, sender in self._open.items() if sender.awaited}

    def acknowledged(self) -> Mapping[int, int]:
        return {
            b: sender.metadata[0] - 1 if sender.metadata else self.last_batch
            for b, sender in self._open.items()
        }

    def answers_read(self, *, unread: Callable[[], Collection[int]]) -> None:
        for broker_id, sender in self._open.items():
            if sender.answered and broker_id not in unread():
                sender.awaited = [n for n in sender.awaited if n > sender.answered]

    def close_all(self) -> None:
        for broker_id in list(self._open):
            self._close(broker_id)

    def queue_sizes(self) -> Mapping[int, int]:
        return {broker_id: s.pending.size for broker_id, s in self._open.items()}

    def _close(self, broker_id: int) -> None:
        sender = self._open.pop(broker_id, None)
        if sender is not None:
            self._cluster.post(lambda: self._world.network.close(sender.channel))

    def _responded(self, sender: _Sender, response: ControlResponse) -> None:
        answered = sender.added if not sender.pending.leadership else sender.answered
        if isinstance(response, UpdateMetadataResponse):
            sender.pending.metadata.answered(is_accepted=response.error_code == NONE)
        added, oldest = sender.added, sender.pending.metadata.oldest

        def deliver() -> None:
            if self._open.get(sender.broker_id) is sender:
                sender.answered = answered
                sender.metadata = [
                    n for n in sender.metadata if n > added or (oldest is not None and n >= oldest)
                ]
                self._listener.responded(response)

        with contextlib.suppress(RuntimeError):  # the controller's loop has ended
            self._loop.call_soon_threadsafe(deliver)


class _Sender:
    """The controller's end of the channel to one broker; ``tests.simulation.network.Sender``.

    Attributes:
        awaited: Numbers of the batches whose leadership is not answered. They belong to the
            controller's thread, as does metadata.
        metadata: Numbers of the batches whose metadata is not acknowledged; 0 before the first.
    """

    def __init__(
        self,
        name: str,
        pending: PendingRequests,
        broker_id: int,
        cluster: SimulatedCluster,
        on_response: Callable[[_Sender, ControlResponse], None],
    ) -> None:
        self.name = name
        self.broker_id = broker_id
        self.pending = pending
        self.awaited: list[int] = []
        self.metadata = [0]
        self.answered = 0
        self.added = 0
        self.channel = Channel(self, broker_id, pending)
        self._cluster = cluster
        self._on_response = on_response

    def add(self, requests: ControlRequests, metadata: Metadata, number: int) -> None:
        """What waits is of this batch, too."""
        self.pending.add(requests, metadata, number)
        self.added = number

    @property
    def can_send(self) -> bool:
        return self.broker_id not in self._cluster.paused_brokers

    def open(self, world: World) -> None:
        self.channel = world.network.open(self, self.broker_id, self.pending)

    def receive(self, response: ControlResponse) -> None:
        self._on_response(self, response)
