"""Many partitions: the figures are printed (``pytest -s``), not judged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import Check, Create, SetData, Written, ZkError
from regent.zk_data.topics import decode_partition_state, encode_partition_state
from sandbox import ZooKeeper
from tests.integration.zookeeper.harness import Connected, connected, settings_for
from tests.support.soak import soak, versions

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPICS = [200, pytest.param(2_000, marks=soak("controller"))]
PARTITIONS_PER_TOPIC = 50
STATE = encode_partition_state(LeaderAndIsr(1, 0, (1, 2, 3), 1, 0))
GUARD = Check(paths.CONTROLLER_EPOCH, 0)


@contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - started:.3f} s")


async def fill(client: Connected, topics: int) -> list[str]:
    """Create topics with all their partitions; paths of the partition states."""
    names = [f"topic-{i}" for i in range(topics)]
    partitions = [TopicPartition(n, p) for n in names for p in range(PARTITIONS_PER_TOPIC)]
    await client.port.multi([Create(p) for p in paths.PERSISTENT_PATHS])
    await client.port.multi([Create(paths.CONTROLLER_EPOCH, b"1")])
    for level in (
        [Create(paths.topic(n), b"x" * 500) for n in names],
        [Create(paths.topic_partitions(n)) for n in names],
        [Create(paths.topic_partition(tp)) for tp in partitions],
    ):
        await client.port.write(level, guard=GUARD)
    states = [paths.partition_state(tp) for tp in partitions]
    with timed(f"create {len(states)} partition states"):
        created = await client.port.write([Create(s, STATE) for s in states], guard=GUARD)
    assert created == [Written(0, s) for s in states]
    return states


@pytest.mark.parametrize("topics", TOPICS)
async def test_partition_states_are_created_read_and_changed(
    shared_server: ZooKeeper, chroot: str, topics: int
) -> None:
    async with connected(settings_for(shared_server.connect_string + chroot)) as client:
        states = await fill(client, topics)
        with timed(f"read {len(states)} partition states"):
            nodes = await client.port.get_data(states)
        with timed(f"read {len(states)} partition states again"):
            assert await client.port.get_data(states) == nodes
        with timed(f"decode {len(states)} partition states"):
            decoded = [
                decode_partition_state(path, node)
                for path, node in zip(states, nodes, strict=True)
                if node is not None
            ]
        assert len(decoded) == len(states)
        names = [paths.topic(f"topic-{i}") for i in range(topics)]
        with timed(f"read {topics} topics with a watch"):
            found = await client.port.get_data(names, watch=True)
        assert all(node is not None for node in found)
        with timed(f"change {len(states)} partition states"):
            written = await client.port.write([SetData(s, STATE, 0) for s in states], guard=GUARD)
        assert written == [Written(1)] * len(states)
        assert not client.session.is_fenced()
        assert client.events == []


async def test_a_thousand_writes_of_which_ten_conflict(shared_server: ZooKeeper) -> None:
    async with connected(settings_for(shared_server.connect_string + "/conflicts")) as client:
        states = await fill(client, 20)
        assert len(states) == 1000
        stale = set(range(50, 1000, 100))
        operations = [SetData(s, STATE, 7 if i in stale else 0) for i, s in enumerate(states)]
        with timed("change 1000 partition states, 10 of which conflict"):
            results = await client.port.write(operations, guard=GUARD)
        assert results == [
            ZkError.BAD_VERSION if i in stale else Written(1) for i in range(len(states))
        ]


@pytest.mark.parametrize("version", versions("1.1.1", others=["2.4.1"]))
async def test_servers_without_bulk_reads(version: str) -> None:
    """ZooKeeper 3.5 and 3.4: bulk reads are found missing before the session is announced."""
    with ZooKeeper(version=version) as server:
        async with connected(settings_for(server.connect_string + "/old/kafka")) as client:
            assert not client.session.generation().has_bulk_reads
            states = await fill(client, 20)
            with timed(f"read {len(states)} partition states one by one"):
                nodes = await client.port.get_data([*states, "/missing"])
            assert [n and n.data for n in nodes] == [STATE] * len(states) + [None]
            children = await client.port.get_children([paths.BROKER_TOPICS, "/missing"])
            assert children == [tuple(sorted(f"topic-{i}" for i in range(20))), None]
            results = await client.port.write(
                [SetData(s, STATE, i % 2) for i, s in enumerate(states[:10])], guard=GUARD
            )
            assert results == [Written(1), ZkError.BAD_VERSION] * 5
            assert [state.value for state in client.states] == ["connected"]
