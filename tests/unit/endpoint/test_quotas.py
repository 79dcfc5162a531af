"""Controller mutation quotas: who may create and delete how many partitions (KIP-599)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import pytest

from regent.protocol.served_apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from regent.zk_data.operations import Create, SetData
from tests.support.clock import Clock
from tests.support.endpoint import LocalEndpoint, new_topic, peer_of
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("controller")

MINUTE = datetime.timedelta(minutes=1)
THROTTLED = 89
EVERYBODY = "/config/users/<default>"
BURST_S = 11


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def endpoint(clock: Clock) -> LocalEndpoint:
    return LocalEndpoint(clock=clock)


def set_rate(cluster: SimulatedCluster, path: str, rate: float | str) -> None:
    """As kafka-configs does."""
    content = {"version": 1, "config": {"controller_mutation_rate": str(rate)}}
    parts = path.split("/")
    for length in range(2, len(parts) + 1):
        parent = "/".join(parts[:length])
        if cluster.call(cluster._world.zookeeper.get, parent) is None:
            cluster.write(Create(parent, b""))
    cluster.write(SetData(path, json.dumps(content).encode()))


def create(endpoint: LocalEndpoint, *counts: int, version: int = 7, **options: Any) -> Any:
    """Create topics with so many partitions, each on one broker."""
    prefix = options.get("prefix", "t")
    topics = [
        new_topic(f"{prefix}-{number}", num_partitions=count) for number, count in enumerate(counts)
    ]
    validate_only = options.get("validate_only", False)
    return endpoint.ask(
        CREATE_TOPICS,
        version,
        {"topics": topics, "timeout": MINUTE, "validate_only": validate_only},
        peer=options.get("peer"),
    )


def codes(answer: Mapping[str, Any]) -> list[int]:
    results = answer.get("topics") or answer.get("results") or answer["responses"]
    return [each["error_code"] for each in results]


def throttle_ms(answer: Mapping[str, Any]) -> int:
    waiting: datetime.timedelta = answer["throttle_time"]
    return round(waiting.total_seconds() * 1000)


def test_without_a_quota_nobody_waits(endpoint: LocalEndpoint) -> None:
    answer = create(endpoint, 500, 500)
    assert (codes(answer), throttle_ms(answer), endpoint.muted_s) == ([0, 0], 0, [])


@pytest.mark.parametrize("version", [6, 7])
def test_what_exceeds_the_quota_is_refused(
    version: int, cluster: SimulatedCluster, endpoint: LocalEndpoint, clock: Clock
) -> None:
    set_rate(cluster, EVERYBODY, 1)
    answer = create(endpoint, 5, 16, 1, version=version)
    assert codes(answer) == [0, 0, THROTTLED]
    assert answer["topics"][2]["error_message"] is None
    assert throttle_ms(answer) == 1_000 * (5 + 16 - BURST_S)
    assert cluster.topics == ("t-0", "t-1")
    assert endpoint.muted_s == [10.0]
    clock.now_s += 9.9
    assert codes(create(endpoint, 1, prefix="u", version=version)) == [THROTTLED]
    clock.now_s += 0.2
    answer = create(endpoint, 1, prefix="u", version=version)
    assert (codes(answer), throttle_ms(answer)) == ([0], 0)


@pytest.mark.parametrize("version", range(6))
def test_former_versions_are_served_and_wait_afterwards(
    version: int, cluster: SimulatedCluster, endpoint: LocalEndpoint
) -> None:
    set_rate(cluster, EVERYBODY, 1)
    answer = create(endpoint, 5, 16, 1, version=version)
    assert codes(answer) == [0, 0, 0]
    assert endpoint.muted_s == [11.0]
    if version >= 2:
        assert throttle_ms(answer) == 11_000
    else:
        assert "throttle_time" not in answer


def test_validation_is_not_charged(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    set_rate(cluster, EVERYBODY, 1)
    assert codes(create(endpoint, 1_000, validate_only=True)) == [0]
    assert codes(create(endpoint, 0, 9, prefix="a.b")) == [37, 0]
    # The controller finds that a.b-1 and a_b-1 have one name in metrics.
    assert codes(create(endpoint, 1, 900, prefix="a_b")) == [0, 17]
    assert codes(create(endpoint, 1, prefix="u")) == [0]
    assert endpoint.muted_s == []


def test_new_partitions_and_deletions_are_charged(
    cluster: SimulatedCluster, controller: LiveController, endpoint: LocalEndpoint, clock: Clock
) -> None:
    for topic in ("a", "b", "c"):
        cluster.create_topic(topic, [(1,), (2,)])
    wait_for(lambda: {"a", "b", "c"} <= controller.view.topics.keys(), "the topics")
    set_rate(cluster, EVERYBODY, 1)

    def grow(version: int, *totals: int) -> Any:
        topics = [
            {"name": name, "count": total, "assignments": None}
            for name, total in zip("abc", totals, strict=False)
        ]
        fields = {"topics": topics, "timeout": MINUTE, "validate_only": False}
        return endpoint.ask(CREATE_PARTITIONS, version, fields)

    def delete(version: int, *names: str) -> Any:
        topics = [{"name": name, "topic_id": None} for name in names]
        fields = {"topic_names": names, "topics": topics, "timeout": MINUTE}
        return endpoint.ask(DELETE_TOPICS, version, fields)

    answer = grow(3, 12, 12, 12)
    assert (codes(answer), throttle_ms(answer)) == ([0, 0, THROTTLED], 9_000)
    answer = grow(2, 12, 12, 12)
    assert (codes(answer), throttle_ms(answer)) == ([37, 37, 0], 19_000)
    clock.now_s += 19 + BURST_S
    answer = delete(6, "a", "none", "b")
    assert (codes(answer), throttle_ms(answer)) == ([0, 3, THROTTLED], 1_000)
    answer = delete(4, "b")
    assert (codes(answer), throttle_ms(answer)) == ([0], 13_000)
    assert cluster.topics == ("c",)


def test_own_quota_precedes_the_default(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    set_rate(cluster, EVERYBODY, 1)
    set_rate(cluster, "/config/users/carol", 100)
    set_rate(cluster, "/config/clients/test", 0.001)
    for user in ("alice", "bob"):
        peer = peer_of(f"User:{user}")
        assert codes(create(endpoint, 12, 1, prefix=user, peer=peer)) == [0, THROTTLED]
    peer = peer_of("User:carol")
    assert codes(create(endpoint, 12, 1, prefix="carol", peer=peer)) == [0, 0]


def test_users_share_what_a_client_may(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    set_rate(cluster, "/config/clients/test", 1)
    alice, bob = peer_of("User:alice"), peer_of("User:bob")
    assert codes(create(endpoint, 12, prefix="a", peer=alice)) == [0]
    assert codes(create(endpoint, 1, prefix="b", peer=bob)) == [THROTTLED]


def test_what_is_no_rate_is_ignored(cluster: SimulatedCluster, endpoint: LocalEndpoint) -> None:
    set_rate(cluster, "/config/users/ANONYMOUS", "much")
    set_rate(cluster, EVERYBODY, 1)
    assert codes(create(endpoint, 12, 1)) == [0, THROTTLED]
