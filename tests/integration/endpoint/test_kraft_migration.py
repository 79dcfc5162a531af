"""The way out: Kafka migrates a cluster to KRaft, that Regent has handed back or still leads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.kraft_controller import KRaftController
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, cluster_of, controller_id_of, regent
from tests.support.soak import soak
from tests.support.workload import Workload, lossless_workload

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("endpoint")]

VERSION = "3.9.1"
_MIGRATED = "Completed migration of metadata from ZooKeeper to KRaft"


def test_a_cluster_that_was_handed_back_is_migrated_and_left_alone_from_then_on(
    tmp_path: Path,
) -> None:
    with under_load(tmp_path) as (cluster, producer, until_the_end):
        with regent(cluster) as process:
            own_id = controller_id_of(process)
            process.wait_until_active()
            producer.wait_for_progress()
        cluster.wait_for_a_broker_as_controller()
        assert own_id not in cluster.znodes.broker_ids()
        until_the_end.enter_context(migrated(cluster))
        producer.wait_for_progress()

        before = cluster.znodes.get("/controller")
        with regent(cluster, may_lead=False) as process:
            assert "KRaft" in refusal_of(process, cluster)
        assert cluster.znodes.get("/controller") == before


def test_a_migration_that_begins_under_regent_takes_the_cluster_from_it(tmp_path: Path) -> None:
    """Nobody should do that. Brokers that restart afterwards are the KRaft controller's."""
    with (
        under_load(tmp_path) as (cluster, producer, until_the_end),
        regent(cluster) as process,
    ):
        process.wait_until_active()
        producer.wait_for_progress()
        until_the_end.enter_context(migrated(cluster))
        assert "KRaft" in refusal_of(process, cluster)
        before = cluster.znodes.get("/controller")
        for broker in cluster.kafka.brokers:
            broker.restart()
            producer.wait_for_progress()
        assert cluster.znodes.get("/controller") == before


@contextlib.contextmanager
def under_load(directory: Path) -> Iterator[tuple[Cluster, Workload, contextlib.ExitStack]]:
    """A cluster, a producer, and what is to last until all that it got acknowledged is read."""
    with (
        cluster_of(VERSION, inter_broker_protocol=None) as cluster,
        contextlib.ExitStack() as until_the_end,
    ):
        cluster.wait_for_a_broker_as_controller()
        cluster.tools.create_topic("kept", partitions=3, replication_factor=3)
        with lossless_workload(cluster.tools, "kept", directory) as producer:
            yield cluster, producer, until_the_end


@contextlib.contextmanager
def migrated(cluster: Cluster) -> Iterator[None]:
    """A KRaft controller that has taken a cluster over and has its metadata."""
    cluster_id = str(cluster.znodes.json("/cluster/id")["id"])
    with KRaftController(zookeeper=cluster.kafka.zookeeper, cluster_id=cluster_id) as controller:
        for broker in cluster.kafka.brokers:
            broker.config |= controller.broker_config()
            mapped = broker.config["listener.security.protocol.map"]
            broker.config["listener.security.protocol.map"] = f"{mapped},CONTROLLER:PLAINTEXT"
            broker.restart()
            cluster.wait_in_sync()
        cluster.wait(
            cluster.znodes.controller,
            "the KRaft controller to hold /controller",
            until=lambda found: found == controller.node_id,
            logs=[controller.log_path],
        )
        cluster.wait(
            lambda: _MIGRATED in controller.process.log_of_this_run(),
            "the metadata to be migrated",
            logs=[controller.log_path],
        )
        yield


def refusal_of(process: RegentProcess, cluster: Cluster) -> str:
    """Why Regent leaves the cluster alone, once it does."""
    status = cluster.wait(
        process.status,
        "Regent to leave the cluster alone",
        until=lambda found: bool(found and found["refusal"] and not found["isActive"]),
    )
    return str(status["refusal"])
