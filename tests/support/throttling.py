"""Copies that are throttled: data to be copied, how far it is, and what throttles it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.support.cluster import Cluster


def bytes_on(cluster: Cluster, broker_id: int, partition: str) -> int:
    """Records of a partition on a broker's disk."""
    logs = cluster.broker(broker_id).state_path.glob(f"data-*/{partition}/*.log")
    return sum(log.stat().st_size for log in logs)


def produce(cluster: Cluster, topic: str, size: int) -> None:
    """Write so many bytes of records."""
    cluster.tools.run(
        "kafka-producer-perf-test",
        f"--topic={topic}",
        f"--num-records={size // 10_000}",
        "--record-size=10000",
        "--throughput=-1",
        "--producer-props",
        f"bootstrap.servers={cluster.tools.bootstrap_servers}",
        "acks=all",
    )


def throttles(cluster: Cluster, topic: str) -> dict[str, Any]:
    """Everything that throttles replicas of a topic, or at brokers, and the notes about it."""
    configs = {topic: cluster.znodes.config(topic) or {}}
    for broker_id in cluster.broker_ids:
        content = cluster.znodes.json(f"/config/brokers/{broker_id}") or {"config": {}}
        configs[f"broker {broker_id}"] = content["config"]
    notes = {
        kind: cluster.znodes.children(f"/regent/throttles/{kind}") for kind in ("topics", "brokers")
    }
    return {what: found for what, found in {**configs, **notes}.items() if found}


@contextlib.contextmanager
def held_back(cluster: Cluster, topic: str, broker_id: int) -> Iterator[None]:
    """A broker that copies partitions of a topic needs hours for it until the end of the block.

    Whatever a test does meanwhile, and however long that takes on a busy machine, replicas of it
    are on their way to this broker. It is limited by hand, so other partitions of a plan are not.
    """
    replicas = {"follower.replication.throttled.replicas": "*"}
    rate = {"follower.replication.throttled.rate": "1024"}
    _configure(cluster, f"brokers/{broker_id}", rate, known_by=[broker_id])
    _configure(cluster, f"topics/{topic}", replicas, known_by=[broker_id])
    produce(cluster, topic, 16_000_000)
    try:
        yield
    finally:
        _configure(cluster, f"topics/{topic}", {}, known_by=[])
        _configure(cluster, f"brokers/{broker_id}", {}, known_by=[])


def _configure(
    cluster: Cluster, entity: str, config: Mapping[str, str], *, known_by: Iterable[int]
) -> None:
    """Give a topic or a broker this configuration, as tools of ZooKeeper's time do, and wait until
    some brokers have loaded it."""
    loading = f"Processing override for entityPath: {entity} "
    brokers = [cluster.broker(broker_id) for broker_id in known_by]
    before = [broker.log_path.read_text().count(loading) for broker in brokers]
    client, path = cluster.znodes.client, f"/config/{entity}"
    client.ensure_path(path)
    client.set(path, json.dumps({"version": 1, "config": dict(config)}).encode())
    change = json.dumps({"version": 2, "entity_path": entity}).encode()
    client.create("/config/changes/config_change_", change, sequence=True)
    cluster.wait(
        lambda: [broker.log_path.read_text().count(loading) for broker in brokers],
        f"brokers to know the configuration of {entity}",
        until=lambda found: all(now > then for now, then in zip(found, before, strict=True)),
    )
