"""`regent export topics`: a cluster becomes resources, and applying them changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster
from tests.support.command_line import run_regent
from tests.support.reassigning import create_topic
from tests.support.resources import Resources
from tests.support.znodes import difference

pytestmark = pytest.mark.integration

TOPICS = ["Exported_By.Name", "exported", "exported-compact", "exported-uneven"]


@pytest.fixture(scope="module")
def topics(cluster: Cluster, process: RegentProcess) -> list[str]:
    """Topics that people have made without resources."""
    for name, config in {
        "exported": "",
        "exported-compact": "cleanup.policy=compact,min.insync.replicas=2",
        "Exported_By.Name": "retention.ms=3600000",
    }.items():
        create_topic(cluster, name, {0: [1, 2], 1: [2, 3], 2: [3, 1]})
        cluster.wait_for_consistency()
        if config:
            cluster.tools.run(
                "kafka-configs",
                f"--bootstrap-server={cluster.tools.bootstrap_servers}",
                "--alter",
                "--entity-type=topics",
                f"--entity-name={name}",
                f"--add-config={config}",
            )
    create_topic(cluster, "exported-uneven", {0: [1, 2], 1: [3]})
    return TOPICS


def test_applying_what_was_exported_changes_nothing(
    cluster: Cluster, resources: Resources, topics: list[str]
) -> None:
    outcome = run_regent("export", "topics", "--zookeeper", cluster.kafka.zookeeper, "*xported*")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    manifests: list[dict[str, Any]] = list(yaml.safe_load_all(outcome.stdout))
    declared = [m["spec"].get("topicName", m["metadata"]["name"]) for m in manifests]
    assert declared == topics

    before = topic_znodes(cluster)
    resources.kubectl("apply", "-f", "-", stdin=outcome.stdout)
    names = [manifest["metadata"]["name"] for manifest in manifests]
    resources.wait_ready(*names)
    for name in names:
        status = resources.get(name)["status"]
        assert status["ownership"] == "Adopted"
        assert "drift" not in status
    assert not difference(before, topic_znodes(cluster))

    again = run_regent("export", "topics", "--zookeeper", cluster.kafka.zookeeper, "*xported*")
    assert again.stdout == outcome.stdout
    applied = resources.kubectl("apply", "-f", "-", stdin=again.stdout)
    assert applied.count("unchanged") == len(topics)

    resources.delete(*names)
    assert not difference(before, topic_znodes(cluster)), "adopted topics are retained"


def test_a_directory_gets_a_file_for_each_topic(
    cluster: Cluster, topics: list[str], tmp_path: Path
) -> None:
    outcome = run_regent(
        "export", "topics", "--zookeeper", cluster.kafka.zookeeper,
        "--directory", tmp_path / "topics", "--namespace", "shop", "exported*",
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome
    files = sorted((tmp_path / "topics").iterdir())
    assert [file.name for file in files] == [
        "exported-compact.yaml",
        "exported-uneven.yaml",
        "exported.yaml",
    ]
    assert yaml.safe_load(files[0].read_text())["metadata"]["namespace"] == "shop"
    assert "# Left out: replicas: " in files[1].read_text()


def topic_znodes(cluster: Cluster) -> dict[str, Any]:
    """What ZooKeeper has about topics: their assignments, states and configurations."""
    return {
        path: znode
        for root in ("/brokers/topics", "/config/topics")
        for path, znode in cluster.znodes.dump(root).items()
    }
