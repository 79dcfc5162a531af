"""A standby's keeper over the in-memory ZooKeeper, and what happens around it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.runtime.collector import Collector
from regent.runtime.standby_keeper import StandbyKeeper
from regent.simulation.broker_znodes import encode_broker
from regent.simulation.zookeeper import Event, InMemoryClient, InMemoryZooKeeper
from regent.standby.status import StandbyPhase
from regent.zk_data import paths
from regent.zk_data.operations import Create, Operation, SessionState, SetData
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic
from sandbox import wait_until_async
from tests.simulation.zookeeper_ports import InMemoryRecursiveWatches, InMemoryZooKeeperPort
from tests.unit.controller.world import make_broker
from tests.unit.runtime.worlds import KeptChannels

T0 = TopicPartition("t", 0)


def state(leader: int) -> bytes:
    return encode_partition_state(LeaderAndIsr(leader, 0, (1, 2), 1, 0))


def topic(name: str, partitions: int = 1) -> list[Operation]:
    assignments = {p: ReplicaAssignment((1, 2)) for p in range(partitions)}
    created: list[Operation] = [
        Create(paths.topic(name), encode_topic(TopicZNode(None, assignments))),
        Create(paths.topic_partitions(name)),
    ]
    for partition in range(partitions):
        tp = TopicPartition(name, partition)
        created += [Create(paths.topic_partition(tp)), Create(paths.partition_state(tp), state(1))]
    return created


class World:
    """A keeper that runs, its client, and somebody who changes things."""

    def __init__(self, *, self_check_interval_s: float) -> None:
        self.server = InMemoryZooKeeper()
        self.admin = self.server.connect()
        for path in (*paths.PERSISTENT_PATHS, paths.CLUSTER):
            self.admin.multi([Create(path)])
        self.admin.multi(topic("t"))
        self.client: InMemoryClient = self.server.connect()
        self.watches = InMemoryRecursiveWatches(self.client)
        self.port = InMemoryZooKeeperPort(self.client)
        self.channels = KeptChannels()
        self.reported: list[Sequence[str]] = []
        self.keeper = StandbyKeeper(
            zookeeper=self.port,
            watches=self.watches,
            channels=self.channels,
            collector=Collector(),
            report=self.reported.append,
            self_check_interval_s=self_check_interval_s,
        )
        self.client.on_event(self._report)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.keeper.run())
        self.keeper.session_changed(SessionState.CONNECTED)

    def _report(self, event: Event) -> None:
        if isinstance(event, SessionState):
            self.keeper.session_changed(event)

    async def until(self, condition: Callable[[], bool]) -> None:
        def is_so() -> bool:
            assert self.task is not None
            assert not self.task.done(), self.task.result()
            return condition()

        await wait_until_async(is_so, describe="the keeper", interval_s=0.001)

    async def current(self) -> None:
        await self.until(
            lambda: (
                self.keeper.status.phase is StandbyPhase.CURRENT and not self.keeper.status.dirty
            )
        )

    def fail_reads(self, error: Exception, *, times: int = 1_000_000) -> None:
        """Have the next readings of data raise the error."""
        get_data, left = self.port.get_data, times

        async def fail(some: Sequence[str], *, watch: bool = False) -> object:
            nonlocal left
            left -= 1
            if left >= 0:
                raise error
            return await get_data(some, watch=watch)

        self.port.get_data = fail  # type: ignore[assignment,method-assign]

    def change(self, leader: int) -> None:
        """Have another leader written for t-0."""
        self.admin.multi([SetData(paths.partition_state(T0), state(leader))])

    def reconnect(self) -> None:
        self.client.disconnect()
        self.client.reconnect()

    def register(self, broker_id: int) -> None:
        content = encode_broker(make_broker(broker_id), timestamp_ms=0)
        self.admin.multi([Create(paths.broker_id(broker_id), content)])

    def prepared(self) -> list[TopicPartition]:
        return sorted(self.keeper.cache.cluster.announced_states)

    def leader(self, tp: TopicPartition = T0) -> int | None:
        known = self.keeper.cache.cluster.leadership.get(tp)
        return None if known is None else known.leader


Make = Callable[..., World]


@contextlib.asynccontextmanager
async def worlds() -> AsyncIterator[Make]:
    """What makes worlds, whose keepers end with the context."""
    made: list[World] = []

    def world(*, self_check_interval_s: float = 3_600) -> World:
        made.append(World(self_check_interval_s=self_check_interval_s))
        return made[-1]

    yield world
    for each in made:
        if each.task is not None:
            each.task.cancel()
            await asyncio.wait([each.task])
