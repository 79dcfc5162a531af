"""The standby's cache over every kind of server: through losses, and true at an election."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from regent.cluster.reads import LISTED, Listing
from regent.controller.state.standby_copy import StandbyCopy
from regent.model.errors import ControllerMovedError
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.runtime.collector import Collector
from regent.runtime.standby_keeper import StandbyKeeper
from regent.standby.cache import StandbyCache
from regent.standby.status import StandbyPhase
from regent.zk_data import paths
from regent.zk_data.operations import Check, Create, Delete, Operation, SessionState, SetData
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic
from tests.contract.zookeeper_worlds import Client, World
from tests.integration.zookeeper.harness import until
from tests.support.soak import soak
from tests.unit.runtime.worlds import KeptChannels

PARTITIONS = 20
TOPICS = 10
ELECTIONS = [4, pytest.param(12, marks=soak("controller"))]


def state(leader_epoch: int) -> bytes:
    return encode_partition_state(LeaderAndIsr(1, leader_epoch, (1, 2), 1, 0))


def creation(topic: str) -> list[Operation]:
    assignments = {p: ReplicaAssignment((1, 2)) for p in range(PARTITIONS)}
    created: list[Operation] = [
        Create(paths.topic(topic), encode_topic(TopicZNode(None, assignments))),
        Create(paths.topic_partitions(topic)),
    ]
    for partition in range(PARTITIONS):
        tp = TopicPartition(topic, partition)
        created += [Create(paths.topic_partition(tp)), Create(paths.partition_state(tp), state(0))]
    return created


def deletion(topic: str) -> list[Operation]:
    return [Delete(operation.path) for operation in reversed(creation(topic))]


async def set_up(world: World) -> Client:
    """Somebody who changes things, in a cluster of some topics."""
    writer = await world.connect()
    await writer.port.multi(
        [*map(Create, (*paths.PERSISTENT_PATHS, paths.CLUSTER)), Create(paths.CONTROLLER_EPOCH)]
    )
    for number in range(TOPICS):
        await writer.port.multi(creation(f"t{number}"))
    return writer


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[StandbyKeeper]:
    """A keeper that runs, and has loaded the cluster. It stops when that is left."""
    keeper = StandbyKeeper(
        zookeeper=client.port,
        watches=client.recursive,
        channels=KeptChannels(),
        collector=Collector(),
        report=lambda _: None,
    )
    client.subscribe(keeper.session_changed)
    keeper.session_changed(SessionState.CONNECTED)
    task = asyncio.create_task(keeper.run())
    try:
        await until(lambda: keeper.status.phase is StandbyPhase.CURRENT)
        yield keeper
    finally:
        task.cancel()
        await asyncio.wait([task])


async def loaded(client: Client) -> StandbyCopy:
    """What a client that has kept nothing reads."""
    cache = StandbyCache()
    cache.expect_anything(Listing.of(await client.port.get_children(LISTED)))
    while reads := cache.next_reads(1_000):
        cache.apply(reads, await client.port.get_data(reads.paths))
    return cache.copy()


async def test_it_is_followed_through_lost_connections_and_sessions(any_server: World) -> None:
    writer = await set_up(any_server)
    client = await any_server.connect()
    rng = random.Random(7)
    async with following(client) as keeper:
        for number in range(40):
            topic = f"t{rng.randrange(TOPICS)}"
            if rng.random() < 0.5:
                await writer.port.multi(deletion(topic))
                await writer.port.multi(creation(topic))
            tps = [TopicPartition(topic, p) for p in range(PARTITIONS)]
            await writer.port.multi(
                [SetData(paths.partition_state(tp), state(number)) for tp in rng.sample(tps, 5)]
            )
            if number in (10, 25):
                await client.drop_connection()
            if number == 18:
                await client.expire()
        await writer.port.multi([*creation("last")])
        last = TopicPartition("last", PARTITIONS - 1)
        await until(
            lambda: (
                keeper.status.phase is StandbyPhase.CURRENT
                and last in keeper.cache.cluster.leadership
                and not keeper.status.dirty
            )
        )
    assert keeper.status.loads >= 2
    assert await keeper.check() == []
    assert keeper.status.partitions == (TOPICS + 1) * PARTITIONS


class Writers:
    """Change states until an election fences them. From then on the truth stands still."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tps = [TopicPartition(f"t{t}", p) for t in range(TOPICS) for p in range(PARTITIONS)]
        self._writes = 0

    async def begin(self, version: int) -> list[asyncio.Task[None]]:
        """Writers of an epoch, which are under way. They end with an election."""
        tasks = [asyncio.create_task(self._write(version, seed)) for seed in range(4)]
        target = self._writes + 40
        await until(lambda: self._writes >= target)
        return tasks

    async def _write(self, epoch_version: int, seed: int) -> None:
        rng = random.Random(seed)
        guard = Check(paths.CONTROLLER_EPOCH, epoch_version)
        try:
            while True:
                self._writes += 1
                await self._client.port.write(
                    [
                        SetData(paths.partition_state(tp), state(self._writes))
                        for tp in rng.sample(self._tps, 10)
                    ],
                    guard=guard,
                )
                await asyncio.sleep(0)
        except ControllerMovedError:
            pass


@pytest.mark.parametrize("elections", ELECTIONS)
async def test_elected_process_gets_what_a_cold_read_finds(
    any_server: World, elections: int
) -> None:
    writers = Writers(await set_up(any_server))
    client = await any_server.connect()
    for version in range(elections):
        async with following(client) as keeper:
            tasks = await writers.begin(version)
            await client.port.multi([SetData(paths.CONTROLLER_EPOCH, b"", version)])
            copy = await keeper.read()
        assert copy is not None
        cold = await loaded(client)
        assert dict(copy.cluster.leadership) == dict(cold.cluster.leadership)
        assert copy.topic_mzxids == cold.topic_mzxids
        assert [dict(copy.cluster.partitions_of(t)) for t in copy.cluster.topics] == [
            dict(cold.cluster.partitions_of(t)) for t in copy.cluster.topics
        ]
        assert dict(copy.cluster.topic_czxids) == dict(cold.cluster.topic_czxids)
        assert copy.cluster.partition_count == TOPICS * PARTITIONS
        await asyncio.gather(*tasks)
