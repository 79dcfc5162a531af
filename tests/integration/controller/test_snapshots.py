"""``regent snapshot`` of real clusters: what it says is what is on the disks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.process import Outcome
from tests.support.cluster import Cluster, cluster_of
from tests.support.command_line import run_regent
from tests.support.reassigning import create_topic
from tests.support.soak import soak

pytestmark = pytest.mark.integration

RECORD_BYTES = 1000


def take(cluster: Cluster, file: Path) -> Outcome:
    return run_regent("snapshot", "--zookeeper", cluster.kafka.zookeeper, "--output", file)


def read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def produce(cluster: Cluster, topic: str, records: int) -> None:
    """Write records to a topic, which may be new."""
    cluster.wait_for_consistency()
    outcome = cluster.tools.run(
        "kafka-producer-perf-test",
        f"--topic={topic}",
        f"--num-records={records}",
        f"--record-size={RECORD_BYTES}",
        "--throughput=-1",
        "--producer-props",
        f"bootstrap.servers={cluster.tools.bootstrap_servers}",
        "acks=all",
    )
    # The tool reports records that it could not write, and ends well.
    assert "Exception" not in outcome.stdout + outcome.stderr, outcome


def on_disk(cluster: Cluster, broker_id: int, topic: str, partition: int) -> int:
    logs = cluster.broker(broker_id).state_path.glob(f"data-*/{topic}-{partition}/*.log")
    return sum(log.stat().st_size for log in logs)


def test_a_snapshot_is_what_the_brokers_have_and_changes_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    is_what_the_brokers_have(cluster, tmp_path, tells_capacity=True)


@soak("versions")
def test_a_snapshot_of_brokers_that_do_not_tell_their_capacity(tmp_path: Path) -> None:
    with cluster_of("2.4.1", log_directories=2) as cluster:
        cluster.wait_for_a_broker_as_controller()
        is_what_the_brokers_have(cluster, tmp_path, tells_capacity=False)


def is_what_the_brokers_have(cluster: Cluster, tmp_path: Path, *, tells_capacity: bool) -> None:
    assignment = {0: [1, 2], 1: [2, 3], 2: [1, 2], 3: [1, 3]}
    create_topic(cluster, "orders", assignment)
    produce(cluster, "orders", 2000)
    before = cluster.znodes.dump()
    file = tmp_path / "snapshot.json"
    outcome = take(cluster, file)
    assert outcome.exit_code == 0, outcome
    assert cluster.znodes.dump() == before
    assert f"{file}: 3 brokers, {len(cluster.znodes.topics())} topics, " in outcome.stdout

    found = read(file)
    assert [broker["id"] for broker in found["brokers"]] == [1, 2, 3]
    capacities = [broker["diskBytes"] for broker in found["brokers"]]
    assert all(capacities) if tells_capacity else capacities == [None] * 3
    assert ("the capacity of the disks" in outcome.stderr) is not tells_capacity
    assert [p for p in found["partitions"] if p["topic"] == "orders"] == [
        {
            "topic": "orders",
            "partition": partition,
            "replicas": replicas,
            "leader": cluster.znodes.state("orders", partition)["leader"],
            "sizes": [on_disk(cluster, broker, "orders", partition) for broker in replicas],
            "isr": cluster.znodes.state("orders", partition)["isr"],
        }
        for partition, replicas in assignment.items()
    ]
    assert sum(sum(p["sizes"]) for p in found["partitions"]) > 2 * 2000 * RECORD_BYTES
    assert run_regent("plan", file).exit_code == 0

    cluster.kill_broker(3)
    outcome = take(cluster, file)
    assert outcome.exit_code == 9, outcome
    assert "broker 3 is not alive: the sizes of its " in outcome.stderr
    brokers = {broker["id"]: broker["alive"] for broker in read(file)["brokers"]}
    assert brokers == {1: True, 2: True, 3: False}
    sizes = [p["sizes"][-1] for p in read(file)["partitions"] if p["topic"] == "orders"]
    assert sizes.count(-1) == 2
    cluster.broker(3).start()


def test_a_file_that_cannot_be_written_is_named(cluster: Cluster, tmp_path: Path) -> None:
    outcome = take(cluster, tmp_path / "nowhere" / "snapshot.json")
    assert outcome.exit_code == 1
    assert "nowhere/snapshot.json cannot be written: No such file or directory" in outcome.stderr


def test_a_snapshot_can_be_parquet(cluster: Cluster, tmp_path: Path) -> None:
    create_topic(cluster, "columns", {0: [1, 2]})
    outcome = take(cluster, tmp_path / "snapshot.parquet")
    assert outcome.exit_code == 0, outcome
    assert run_regent("plan", tmp_path / "snapshot.parquet", "--json").exit_code in (0, 4)
