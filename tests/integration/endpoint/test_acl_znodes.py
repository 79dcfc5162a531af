"""Access control lists that Kafka's own tool has written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from regent.endpoint.acl_cache import AclCache
from regent.model.acls import (
    CLUSTER_NAME,
    Acl,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from sandbox import KafkaTools, ZooKeeper
from tests.integration.zookeeper.harness import connected, settings_for
from tests.support.soak import versions

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.mark.parametrize("version", versions("2.8.2", others=("2.4.1",)))
async def test_what_the_tool_writes_is_read(version: str, zookeeper: ZooKeeper) -> None:
    connect_string = f"{zookeeper.connect_string}/{version}"
    tools = KafkaTools("no brokers", version=version)

    async def change(*arguments: str) -> None:
        await asyncio.to_thread(
            tools.run,
            "kafka-acls",
            "--authorizer-properties",
            f"zookeeper.connect={connect_string}",
            *arguments,
            "--force",
        )

    async with connected(settings_for(connect_string)) as client:
        cache = AclCache(client.port)
        assert not await cache.exists()
        await change(
            "--add",
            *("--allow-principal=User:CN=alice,O=Example", "--allow-host=10.0.0.1"),
            *("--operation=Create", "--operation=DescribeConfigs", "--topic=orders"),
        )
        alice = "User:CN=alice,O=Example"
        orders = ResourcePattern(ResourceType.TOPIC, "orders")
        on_orders = {
            Acl(alice, Permission.ALLOW, operation, "10.0.0.1")
            for operation in (AclOperation.CREATE, AclOperation.DESCRIBE_CONFIGS)
        }
        assert await cache.exists()
        assert await _entries(cache) == {orders: on_orders}

        # From now on notifications say what is new.
        await change(
            "--add",
            *("--deny-principal=User:*", "--operation=All", "--topic=secret-"),
            "--resource-pattern-type=prefixed",
        )
        await change("--add", "--allow-principal=User:kafka", "--cluster", "--operation=Alter")
        secret = ResourcePattern(ResourceType.TOPIC, "secret-", PatternType.PREFIXED)
        cluster = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
        rest = {
            secret: {Acl("User:*", Permission.DENY, AclOperation.ALL, "*")},
            cluster: {Acl("User:kafka", Permission.ALLOW, AclOperation.ALTER, "*")},
        }
        assert await _entries(cache) == {orders: on_orders, **rest}
        await change("--remove", "--topic=orders")
        assert await _entries(cache) == rest
        assert await _entries(AclCache(client.port)) == rest


async def _entries(cache: AclCache) -> dict[ResourcePattern, set[Acl]]:
    acls = await cache.acls(max_age_s=0.0)
    return {pattern: set(entries) for pattern, entries in acls.entries.items() if entries}
