"""The controller's node shows at once what its answers to administrators say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from regent.admin.commands import ElectionType
from regent.protocol.served_apis import (
    ALTER_PARTITION_REASSIGNMENTS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
)
from sandbox import wait_until_async
from tests.integration.endpoint.clients_support import ServedCluster, brokers_of
from tests.support.kafka_client import KafkaClient, connected

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    brokers_of("3.9.1", others=("1.1.1", "2.8.2")),
]

TOPICS = 100
GROWN = 50
CLIENTS = 3
"""Clients that ask after each answer. Their requests are passed on to different brokers."""

MINUTE = {"timeoutMs": 60_000}


class Shown(NamedTuple):
    """What Metadata says of a topic: the error code, and the leader of each partition."""

    error_code: int
    leaders: Mapping[int, int]


class Clients:
    """An administrator and other clients, connected to Regent."""

    def __init__(self, admin: KafkaClient, others: Sequence[KafkaClient]) -> None:
        self._admin = admin
        self._others = others

    async def done(self, api: Any, version: int, fields: dict[str, Any]) -> Any:
        """The answer to a request of the administrator."""
        return await self._admin.ask(api, version, fields)

    async def shown(self, topic: str) -> list[Shown]:
        """What each client is told now."""
        return await asyncio.gather(*(self._shown(client, topic) for client in self._others))

    async def _shown(self, client: KafkaClient, topic: str) -> Shown:
        fields = {"topics": [{"name": topic}], "allowAutoTopicCreation": False}
        answer = await client.ask(METADATA, 4, fields)
        (found,) = answer.topics
        leaders = {p.partition_index: p.leader_id for p in found.partitions}
        return Shown(found.error_code.value, leaders)


@contextlib.asynccontextmanager
async def clients(served: ServedCluster) -> AsyncIterator[Clients]:
    async with contextlib.AsyncExitStack() as stack:
        admin, *others = [
            await stack.enter_async_context(connected(served.port)) for _ in range(CLIENTS + 1)
        ]
        yield Clients(admin, others)


async def create(asking: Clients, topic: str, replicas: Sequence[int]) -> None:
    wanted = {
        "name": topic,
        "numPartitions": -1,
        "replicationFactor": -1,
        "assignments": [{"partitionIndex": 0, "brokerIds": list(replicas)}],
        "configs": [],
    }
    answer = await asking.done(
        CREATE_TOPICS, 2, {"topics": [wanted], "validateOnly": False, **MINUTE}
    )
    assert answer.topics[0].error_code.value == 0


def replicas_of(number: int) -> tuple[int, int]:
    return number % 3 + 1, (number + 1) % 3 + 1


async def test_clients_see_at_once_what_is_created_grown_and_deleted(
    served: ServedCluster,
) -> None:
    stale: list[tuple[str, str, Shown]] = []
    async with clients(served) as asking:
        for number in range(TOPICS):
            topic = f"created-{number}"
            await create(asking, topic, replicas_of(number))
            stale += [
                ("created", topic, each)
                for each in await asking.shown(topic)
                if each.error_code != 0 or -1 in each.leaders.values()
            ]
        for number in range(GROWN):
            topic = f"created-{number}"
            wanted = {"name": topic, "count": 3, "assignments": None}
            answer = await asking.done(
                CREATE_PARTITIONS, 0, {"topics": [wanted], "validateOnly": False, **MINUTE}
            )
            assert answer.results[0].error_code.value == 0
            stale += [
                ("grown", topic, each)
                for each in await asking.shown(topic)
                if len(each.leaders) != 3 or -1 in each.leaders.values()
            ]
        for number in range(TOPICS):
            topic = f"created-{number}"
            answer = await asking.done(DELETE_TOPICS, 1, {"topicNames": [topic], **MINUTE})
            assert answer.responses[0].error_code.value == 0
            stale += [
                ("deleted", topic, each)
                for each in await asking.shown(topic)
                if each.error_code != 3
            ]
    assert stale == []


async def test_clients_see_leaders_at_once_that_were_elected(served: ServedCluster) -> None:
    stale: list[tuple[str, Shown]] = []
    async with clients(served) as asking:
        topics = {f"elected-{number}": replicas_of(number) for number in range(GROWN)}
        for topic, replicas in topics.items():
            await create(asking, topic, replicas)
            swapped = {"partitionIndex": 0, "replicas": list(reversed(replicas))}
            answer = await asking.done(
                ALTER_PARTITION_REASSIGNMENTS,
                0,
                {"topics": [{"name": topic, "partitions": [swapped]}], **MINUTE},
            )
            assert answer.responses[0].partitions[0].error_code.value == 0

        async def under_way() -> int:
            answer = await asking.done(LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None, **MINUTE})
            return len(answer.topics)

        await wait_until_async(
            under_way,
            until=lambda count: count == 0,
            describe="the orders of replicas to be changed",
        )
        for topic, (_, preferred) in topics.items():
            wanted = {"topic": topic, "partitions": [0]}
            answer = await asking.done(
                ELECT_LEADERS,
                1,
                {
                    "electionType": ElectionType.PREFERRED.value,
                    "topicPartitions": [wanted],
                    **MINUTE,
                },
            )
            result = answer.replica_election_results[0].partition_result[0]
            assert result.error_code.value == 0
            stale += [
                (topic, each)
                for each in await asking.shown(topic)
                if each.leaders != {0: preferred}
            ]
    assert stale == []
