"""Partitions move between real brokers under load, and no acknowledged record gets lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import KafkaCluster, KafkaTools, ZooKeeper
from tests.integration.controller.cluster import SESSION_TIMEOUT_MS, Cluster, regent
from tests.integration.controller.reassigning import (
    REQUEST,
    Targets,
    create_topic,
    request_content,
    request_reassignment,
    under_way,
    wait_for_hosts,
    wait_until_moved,
)
from tests.integration.controller.workload import consume_all, workload
from tests.integration.controller.znodes import Znodes
from tests.support.figures import Figure

COMPLETE = re.compile(r" completed successfully|Reassignment of partition \S+ is complete\.")
"""What the tool says of a partition, before 2.6 and since."""

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def old_cluster(zookeeper: ZooKeeper) -> Iterator[Cluster]:
    """Three brokers 1.1.1, whose LeaderAndIsr knows nothing of reassignments."""
    connect_string = f"{zookeeper.connect_string}/old"
    with (
        KafkaCluster(
            zookeeper=connect_string,
            brokers=3,
            version="1.1.1",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            config={"auto.leader.rebalance.enable": False},
        ) as kafka,
        Znodes(connect_string) as znodes,
    ):
        cluster = Cluster(kafka, znodes)
        yield cluster
        cluster.close()


def test_partitions_grow_shrink_move_and_come_back_under_load(
    cluster: Cluster, tmp_path: Path
) -> None:
    move_about(cluster, tmp_path)
    cluster.wait_for_consistency()


def test_partitions_of_brokers_that_know_nothing_of_reassignments_move_as_well(
    old_cluster: Cluster, tmp_path: Path
) -> None:
    move_about(old_cluster, tmp_path)


def move_about(cluster: Cluster, tmp_path: Path) -> None:
    """Every kind of move while a producer writes, each to its end; one is cancelled."""
    moved, alone = ("moved", 0), ("moved-single", 0)
    with regent(cluster) as process:
        process.wait_until_active()
        create_topic(cluster, "moved", {0: [1, 2]})
        create_topic(cluster, "moved-single", {0: [1]})
        with workload(cluster.tools, "moved", tmp_path) as producer:
            producer.wait_for_progress()
            for step in (
                {moved: [1, 2, 3], alone: [1, 2]},  # grow
                {moved: [1, 3], alone: [2]},  # shrink
                {moved: [2, 3], alone: [3]},  # one replica, and all of them
                {moved: [3, 2]},  # only the order
                {moved: [1, 2], alone: [1]},
            ):
                request_reassignment(cluster, step)
                wait_until_moved(cluster, step)
                wait_for_hosts(cluster, step)
                producer.wait_for_progress()

            cluster.kill_broker(3)
            request_reassignment(cluster, {moved: [3, 1]})
            cluster.wait(lambda: under_way(cluster, "moved"), "the move to begin")
            producer.wait_for_progress()
            request_reassignment(cluster, {moved: [2, 1]})  # back
            wait_until_moved(cluster, {moved: [2, 1]})
            cluster.broker(3).start()
            producer.wait_for_progress()
            wait_for_hosts(cluster, {moved: [1, 2], alone: [1]})
        acknowledged = producer.acknowledged()
        assert not producer.failed()
        assert not acknowledged.keys() - set(consume_all(cluster.tools, "moved"))


@pytest.mark.parametrize("version", ["1.1.1", "2.4.1", "2.8.2"])
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
