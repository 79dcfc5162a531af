"""Many partitions on servers without bulk reads."""

from __future__ import annotations

import pytest

from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import Check, Create, SetData, Written, ZkError
from regent.zk_data.topics import encode_partition_state
from sandbox import ZooKeeper
from tests.integration.zookeeper.harness import Connected, connected, settings_for
from tests.support.soak import versions

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPICS = 20
PARTITIONS_PER_TOPIC = 50
STATE = encode_partition_state(LeaderAndIsr(1, 0, (1, 2, 3), 1, 0))
GUARD = Check(paths.CONTROLLER_EPOCH, 0)


async def fill(client: Connected) -> list[str]:
    """Create topics with all their partitions; paths of the partition states."""
    names = [f"topic-{i}" for i in range(TOPICS)]
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
    created = await client.port.write([Create(s, STATE) for s in states], guard=GUARD)
    assert created == [Written(0, s) for s in states]
    return states


@pytest.mark.parametrize("version", versions("1.1.1", others=["2.4.1"]))
async def test_servers_without_bulk_reads(version: str) -> None:
    """ZooKeeper 3.5 and 3.4: bulk reads are found missing before the session is announced."""
    with ZooKeeper(version=version) as server:
        async with connected(settings_for(server.connect_string + "/old/kafka")) as client:
            assert not client.session.generation().has_bulk_reads
            states = await fill(client)
            nodes = await client.port.get_data([*states, "/missing"])
            assert [n and n.data for n in nodes] == [STATE] * len(states) + [None]
            children = await client.port.get_children([paths.BROKER_TOPICS, "/missing"])
            assert children == [tuple(sorted(f"topic-{i}" for i in range(TOPICS))), None]
            results = await client.port.write(
                [SetData(s, STATE, i % 2) for i, s in enumerate(states[:10])], guard=GUARD
            )
            assert results == [Written(1), ZkError.BAD_VERSION] * 5
            assert [state.value for state in client.states] == ["connected"]
