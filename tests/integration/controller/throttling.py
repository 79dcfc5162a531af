"""Copies that are throttled: data to be copied, how far it is, and what throttles it."""

from __future__ import annotations

from typing import Any

from tests.integration.controller.cluster import Cluster


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
