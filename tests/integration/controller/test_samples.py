"""``regent sample`` of real clusters: what it appends is what is on the disks and in the logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sandbox.process import Outcome
from tests.integration.controller.test_snapshots import on_disk, produce
from tests.support.cluster import Cluster
from tests.support.clusters import Clusters
from tests.support.command_line import run_regent
from tests.support.reassigning import create_topic
from tests.support.soak import versions

pytestmark = pytest.mark.integration


def take(cluster: Cluster, workspace: Path, *options: str | Path) -> Outcome:
    return run_regent("sample", workspace, "--zookeeper", cluster.kafka.zookeeper, *options)


def rows(outcome: Outcome, kind: str) -> list[dict[str, Any]]:
    (file,) = (line for line in outcome.stdout.splitlines() if f"/{kind}/" in line)
    found: list[dict[str, Any]] = pq.ParquetFile(file).read().to_pylist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", versions("3.9.1", others=("1.1.1",)))
def test_a_sample_is_what_the_brokers_have_and_changes_nothing(
    version: str, clusters: Clusters, tmp_path: Path
) -> None:
    assignment = {0: [1, 2], 1: [2, 3], 2: [3, 1]}
    cluster = clusters.healthy(version)
    create_topic(cluster, "orders", assignment)
    produce(cluster, "orders", 3000)
    before = cluster.znodes.dump()
    outcome = take(cluster, tmp_path)
    assert outcome.exit_code == 0, outcome
    assert cluster.znodes.dump() == before
    partitions = [row for row in rows(outcome, "partitions") if row["topic"] == "orders"]
    assert [(row["partition"], row["replicas"]) for row in partitions] == list(assignment.items())
    assert sum(row["log_end_offset"] for row in partitions) == 3000
    assert {row["log_start_offset"] for row in partitions} == {0}
    assert {row["compacted"] for row in partitions} == {False}
    assert all((row["topic_id"] is None) is (version == "1.1.1") for row in partitions)
    created = before["/brokers/topics/orders"].czxid
    assert {row["created"] for row in partitions} == {created}
    assert [row["sizes"] for row in partitions] == [
        [on_disk(cluster, broker, "orders", partition) for broker in replicas]
        for partition, replicas in assignment.items()
    ]
    assert [row["broker"] for row in rows(outcome, "brokers")] == [1, 2, 3]

    cluster.kill_broker(3)
    outcome = take(cluster, tmp_path)
    assert outcome.exit_code == 9, outcome
    assert "broker 3 is not alive: the sizes of its " in outcome.stderr
    last = [row for row in rows(outcome, "partitions") if row["topic"] == "orders"]
    assert [row["sizes"].count(None) for row in last] == [0, 1, 1]
    assert len(list(tmp_path.rglob("*.parquet"))) == 4


def test_bad_rates_and_workspaces_are_named_and_nothing_is_appended(
    cluster: Cluster, tmp_path: Path
) -> None:
    rates = tmp_path / "rates.json"
    rates.write_text('[{"topic": "nowhere", "partition": 0, "bytesIn": 5}]')
    outcome = take(cluster, tmp_path / "history", "--rates", rates)
    assert outcome.exit_code == 1
    assert "rates.json: the cluster has no partition nowhere-0" in outcome.stderr
    assert not (tmp_path / "history").exists()
    outcome = take(cluster, rates)
    assert outcome.exit_code == 1
    assert f"workspace {rates} cannot be written" in outcome.stderr
    assert take(cluster, tmp_path, "--retention", "long").exit_code == 2
