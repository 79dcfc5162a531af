"""Regent is killed again and again while it moves partitions: they arrive, each copied once.

``REASSIGNED_PARTITIONS=200 KILLS=20 python -m pytest <this file>`` is the long version.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter

import pytest

from tests.support.cluster import Cluster, regent
from tests.support.figures import Figure
from tests.support.reassigning import (
    create_topic,
    request_reassignment,
    wait_until_moved,
)
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("controller")]

PARTITIONS = int(os.environ.get("REASSIGNED_PARTITIONS", "50"))
KILLS = int(os.environ.get("KILLS", "3"))
TOPIC = "moved-while-killed"
CREATED = re.compile(rf"Created log for partition ({TOPIC}-\d+) ")


def test_all_partitions_arrive_and_each_is_copied_once(cluster: Cluster, figure: Figure) -> None:
    assignment = {p: [1 + p % 2] for p in range(PARTITIONS)}
    create_topic(cluster, TOPIC, assignment)
    created_before = Counter(
        (broker_id, f"{TOPIC}-{p}") for p, replicas in assignment.items() for broker_id in replicas
    )
    # A broker logs the creation some time after the directory is there.
    cluster.wait(
        lambda: created(cluster),
        "every replica's creation to be logged",
        until=lambda found: found == created_before,
    )
    rounds = [[3], [1, 2], [2, 3], [1]]
    chance = random.Random(KILLS)
    killed = 0
    moved_by_then: list[int] = []
    expected: Counter[tuple[int, str]] = Counter()
    while killed < KILLS:
        for replicas in rounds:
            targets = {(TOPIC, p): replicas for p in range(PARTITIONS)}
            assigned = cluster.znodes.assignment(TOPIC) or {}
            expected.update(
                (broker_id, f"{TOPIC}-{p}")
                for p in range(PARTITIONS)
                for broker_id in replicas
                if broker_id not in assigned[p]
            )
            with regent(cluster) as process:
                process.wait_until_active()
                request_reassignment(cluster, targets)
                if killed < KILLS:
                    time.sleep(chance.uniform(0.0, 1.5))  # a moment that nobody has chosen
                    cluster.kill_regent(process)
                    moved_by_then.append(arrived(cluster, replicas))
                    killed += 1
                    process.start()
                    process.wait_until_active()
                wait_until_moved(cluster, targets)
    copied = created(cluster) - created_before
    figure("partitions and kills", f"{PARTITIONS}, {killed}")
    figure("partitions that had arrived at the kills", sorted(moved_by_then))
    # A replica that left when Regent died may not have been deleted, and is found on the way back.
    figure("replicas found where they had been left", sum((expected - copied).values()))
    assert not copied - expected, "copied more than once"


def arrived(cluster: Cluster, replicas: list[int]) -> int:
    """How many partitions are at their target."""
    return list((cluster.znodes.assignment(TOPIC) or {}).values()).count(replicas)


def created(cluster: Cluster) -> Counter[tuple[int, str]]:
    """How often each broker has created the log of each partition."""
    return Counter(
        (broker.broker_id, partition)
        for broker in cluster.kafka.brokers
        for partition in CREATED.findall(broker.log_path.read_text())
    )
