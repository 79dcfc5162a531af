"""Moving partitions as Kafka's tools of ZooKeeper's time do: by ``/admin/reassign_partitions``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kazoo.exceptions import NoNodeError

from tests.support.cluster import Cluster
from tests.support.metadata import Partition

REQUEST = "/admin/reassign_partitions"
Targets = Mapping[Partition, list[int]]


def create_topic(cluster: Cluster, topic: str, assignment: Mapping[int, list[int]]) -> None:
    """Write the znodes of a topic, and wait until it is there."""
    cluster.znodes.create_topic(topic, assignment)
    cluster.wait_in_sync(topic)


def request_content(targets: Targets) -> str:
    """What the tools take, and leave in the request node."""
    listed = [
        {"topic": topic, "partition": partition, "replicas": replicas}
        for (topic, partition), replicas in targets.items()
    ]
    return json.dumps({"version": 1, "partitions": listed})


def request_reassignment(cluster: Cluster, targets: Targets) -> None:
    """Ask for reassignments, in addition to nothing or instead of what is asked for."""
    content = request_content(targets).encode()
    try:
        cluster.znodes.client.set(REQUEST, content)
    except NoNodeError:
        cluster.znodes.client.create(REQUEST, content)


def under_way(cluster: Cluster, topic: str) -> dict[str, Any]:
    """What of a topic's node says that it is being reassigned; brokers before 2.4 say nothing."""
    content = cluster.znodes.json(f"/brokers/topics/{topic}")
    keys = ("adding_replicas", "removing_replicas")
    return {key: content[key] for key in keys if content.get(key)}


def wait_until_moved(cluster: Cluster, targets: Targets) -> None:
    """Wait until partitions are at their targets, in sync, and the request is gone."""

    def missing() -> dict[str, Any]:
        found = {
            f"{topic}-{p}": (assigned, state)
            for (topic, p), replicas in targets.items()
            if (assigned := (cluster.znodes.assignment(topic) or {})[p]) != replicas
            or sorted((state := cluster.znodes.state(topic, p)).get("isr", [])) != sorted(replicas)
            or under_way(cluster, topic)
        }
        asked = cluster.znodes.json(REQUEST)
        return found | ({} if asked is None else {REQUEST: asked})

    cluster.wait(missing, f"{len(targets)} partitions to be moved", until=lambda found: not found)


def hosts(cluster: Cluster, topic: str, partition: int = 0) -> list[int]:
    """Brokers with a directory of the partition."""
    return [
        broker.broker_id
        for broker in cluster.kafka.brokers
        if any(_directories(broker.state_path, f"{topic}-{partition}"))
    ]


def _directories(state: Path, name: str) -> list[Path]:
    return list(state.glob(f"data-*/{name}"))


def wait_for_hosts(cluster: Cluster, targets: Targets) -> None:
    """Wait until the replicas are where they are to be and nowhere else."""
    cluster.wait(
        lambda: {
            tp: found
            for tp, wanted in targets.items()
            if (found := hosts(cluster, *tp)) != sorted(wanted)
        },
        "replicas to be on their brokers only",
        until=lambda found: not found,
    )
