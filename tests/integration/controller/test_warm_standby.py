"""Two Regents that keep the standby's cache, on real brokers: the second one takes over from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, regent
from tests.support.reassigning import create_topic

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "warm"


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[tuple[RegentProcess, RegentProcess]]:
    """The active one, and one whose cache is current."""
    with ExitStack() as stack:
        first = stack.enter_context(regent(cluster, name="regent-a", warm_standby=True))
        first.wait_until_active()
        second = stack.enter_context(regent(cluster, name="regent-b", warm_standby=True))
        cluster.wait(
            lambda: (second.status() or {}).get("warmStandby", {}).get("phase"),
            "the standby's cache to be current",
            until=lambda phase: phase == "current",
            logs=[second.log_path],
        )
        yield first, second


def metric(process: RegentProcess, name: str) -> float:
    (line,) = [li for li in process.metrics().splitlines() if li.startswith(f"{name} ")]
    return float(line.split()[1])


def grow(cluster: Cluster, added: dict[int, list[int]]) -> None:
    """Write the topic's node, as kafka-topics does with ``--zookeeper``."""
    path = f"/brokers/topics/{TOPIC}"
    node = cluster.znodes.json(path)
    node["partitions"] |= {str(partition): replicas for partition, replicas in added.items()}
    cluster.znodes.client.set(path, json.dumps(node).encode())


def test_who_takes_over_leads_what_it_has_not_read(
    cluster: Cluster, pair: tuple[RegentProcess, RegentProcess]
) -> None:
    """A broker that dies with the active Regent is the first thing that it has to deal with, a
    topic that grows the next: the cache alone shows it both."""
    first, second = pair
    create_topic(cluster, TOPIC, {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2], 3: [1, 3, 2]})
    session_id = cluster.controller_session()
    first.kill()
    cluster.kill_broker(1)
    cluster.end_session(session_id)
    second.wait_until_active()
    assert metric(second, "regent_standby_copies_total") == 1
    for partition, leader in ((0, 2), (3, 3)):
        cluster.wait_for_leader(TOPIC, leader, partition)
    cluster.wait_for_consistency()

    cluster.broker(1).start()
    grow(cluster, {4: [2, 3, 1], 5: [3, 1, 2]})
    cluster.wait(
        lambda: len(cluster.znodes.states(TOPIC)), "new partitions", until=lambda n: n == 6
    )
    cluster.wait_in_sync(TOPIC)
    cluster.wait_for_consistency()
    assert metric(second, "regent_standby_differences_total") == 0
    first.start()
