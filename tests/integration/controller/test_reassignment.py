"""Partitions are moved by Kafka's own tools, and by one controller after another.

Moves under load are among the flows of ``tests/matrix``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox import KafkaTools
from tests.support.cluster import Cluster, regent
from tests.support.figures import Figure
from tests.support.reassigning import (
    REQUEST,
    Targets,
    create_topic,
    request_content,
    request_reassignment,
    under_way,
    wait_for_hosts,
    wait_until_moved,
)
from tests.support.soak import versions

COMPLETE = re.compile(r" completed successfully|Reassignment of partition \S+ is complete\.")
"""What the tool says of a partition, before 2.6 and since."""

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.parametrize("version", versions("2.8.2", others=("1.1.1", "2.4.1")))
def test_kafkas_own_tool_moves_partitions_and_verifies_it(
    cluster: Cluster, version: str, tmp_path: Path
) -> None:
    topic = f"tool-{version}"
    tools = KafkaTools("", version=version, zookeeper=cluster.kafka.zookeeper)
    there = {(topic, 0): [2, 3], (topic, 1): [3, 1]}
    back = {(topic, 0): [3, 1], (topic, 1): [3, 2]}

    def run(targets: Targets, *action: str) -> str:
        file = tmp_path / "reassignment.json"
        file.write_text(request_content(targets))
        return tools.run(
            "kafka-reassign-partitions",
            f"--zookeeper={cluster.kafka.zookeeper}",
            f"--reassignment-json-file={file}",
            *action,
        ).stdout

    with regent(cluster) as process:
        process.wait_until_active()
        create_topic(cluster, topic, {0: [1, 2], 1: [1, 2]})
        started = run(there, "--execute", "--throttle=10000000")
        assert re.search(r"Successfully started (partition )?reassignment", started), started
        wait_until_moved(cluster, there)
        assert "follower.replication.throttled.replicas" in (cluster.znodes.config(topic) or {})
        assert len(COMPLETE.findall(run(there, "--verify"))) == 2
        assert cluster.znodes.config(topic) == {}  # the tool has removed what limited the copying

        cluster.kill_broker(1)
        request_reassignment(cluster, back)  # the tool does not start what it sees to be waiting
        cluster.wait(
            lambda: cluster.znodes.json(REQUEST)["partitions"],
            "the partition that does not need broker 1 to be moved",
            until=lambda listed: len(listed) == 1,
        )
        assert run(back, "--verify").count("is still in progress") == 1
        cluster.broker(1).start()
        wait_until_moved(cluster, back)
        assert len(COMPLETE.findall(run(back, "--verify"))) == 2


def test_what_a_brokers_controller_has_begun_is_finished_and_the_other_way_round(
    cluster: Cluster, figure: Figure
) -> None:
    there, back = {("relay", 0): [3, 2]}, {("relay", 0): [1, 3]}
    create_topic(cluster, "relay", {0: [1, 2]})
    cluster.kill_broker(3)
    cluster.wait_for_a_broker_as_controller()
    request_reassignment(cluster, there)
    cluster.wait(lambda: under_way(cluster, "relay"), "a broker's controller to begin")
    with regent(cluster) as process:
        process.wait_until_active()
        assert cluster.znodes.get(REQUEST)
        cluster.broker(3).start()
        wait_until_moved(cluster, there)
        wait_for_hosts(cluster, there)
        cluster.kill_broker(1)
        request_reassignment(cluster, back)
        cluster.wait(lambda: under_way(cluster, "relay"), "Regent to begin")
    cluster.wait_for_a_broker_as_controller()
    cluster.broker(1).start()
    wait_until_moved(cluster, back)
    wait_for_hosts(cluster, back)
    figure("leader epoch in the end", cluster.znodes.state("relay")["leader_epoch"])
