"""Brokers of several versions at their own protocol version, led by Regent: what they ask it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from sandbox import KafkaTools
from sandbox.kafka_jars import version_tuple
from sandbox.regent_process import RegentProcess
from tests.integration.endpoint.clients_support import brokers_of, served_requests
from tests.integration.endpoint.stopping import (
    assert_stopped_cleanly_at_the_first_attempt,
    spread_topic,
)
from tests.support.cluster import Cluster, controller_id_of, regent
from tests.support.figures import Figure
from tests.support.workload import lossless_workload

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PARTITIONS = 6
ASKS_FOR_ISR_CHANGES_SINCE = (2, 7)
ASKS_FOR_PRODUCER_IDS_SINCE = (3, 0)
LOOKS_IN_METADATA_SINCE = (3, 0)

ALL = brokers_of("1.1.1", "3.9.1", others=("2.4.1", "2.8.2", "3.3.2"))
OLDEST = brokers_of("1.1.1", others=("2.4.1", "2.8.2", "3.3.2", "3.9.1"))
NEWEST = brokers_of("3.9.1", others=("1.1.1", "2.4.1", "2.8.2", "3.3.2"))

_numbers = itertools.count(1)


def version_of(cluster: Cluster) -> tuple[int, ...]:
    return version_tuple(cluster.kafka.version)


def new_topic(cluster: Cluster, *, partitions: int = PARTITIONS) -> str:
    """A topic that all brokers host, and each leads a part of."""
    topic = f"led-everywhere-{next(_numbers)}"
    spread_topic(cluster, topic, partitions)
    return topic


def states(cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    count = len(cluster.znodes.assignment(topic) or {})
    return [cluster.znodes.state(topic, p) for p in range(count)]


@ALL
def test_the_registration_is_there_exactly_for_brokers_that_look_for_it(
    cluster: Cluster, process: RegentProcess
) -> None:
    own = f"/brokers/ids/{controller_id_of(process)}"
    status = cluster.wait(process.status, "the status")
    assert status["endpoint"]["listenersNotServed"] == {}
    if version_of(cluster) >= LOOKS_IN_METADATA_SINCE:
        assert cluster.znodes.get(own) is None
        return
    content = cluster.wait(lambda: cluster.znodes.json(own), "Regent to be registered")
    names = [each.split(":")[0] for each in content["endpoints"]]
    assert sorted(names) == ["BROKERS", "PLAINTEXT"]
    cluster.wait_for_consistency()


@ALL
def test_a_broker_moves_its_leaders_and_stops_cleanly_at_the_first_attempt(
    cluster: Cluster, process: RegentProcess, tmp_path: Path, figure: Figure
) -> None:
    topic = new_topic(cluster)
    with lossless_workload(cluster.tools, topic, tmp_path) as producer:
        broker = cluster.broker(2)
        broker.stop()
        assert_stopped_cleanly_at_the_first_attempt(broker)
        assert all(state["leader"] != 2 for state in states(cluster, topic))
        producer.wait_for_progress()
        broker.start()
        cluster.wait_in_sync()
    assert served_requests(process, "ControlledShutdown") == 1
    figure("longest time without an acknowledgement", f"{producer.longest_gap_ms()} ms")


@OLDEST  # what the newest ask, test_waiting_leaders.py sees
def test_isrs_shrink_after_a_kill_and_grow_after_a_restart(
    cluster: Cluster, process: RegentProcess, tmp_path: Path, figure: Figure
) -> None:
    topic = new_topic(cluster)
    with lossless_workload(cluster.tools, topic, tmp_path) as producer:
        cluster.kill_broker(3)
        cluster.wait(
            lambda: states(cluster, topic),
            "the ISRs to shrink",
            until=lambda found: all(3 not in state["isr"] for state in found),
        )
        producer.wait_for_progress()
        cluster.broker(3).start()
        cluster.wait_in_sync(topic)
    asked = served_requests(process, "AlterPartition")
    assert (asked > 0) is (version_of(cluster) >= ASKS_FOR_ISR_CHANGES_SINCE)
    figure("AlterPartition requests", asked)
    figure("longest time without an acknowledgement", f"{producer.longest_gap_ms()} ms")
    assert cluster.wait(process.status, "the status")["isActive"]


@ALL
def test_no_topic_of_brokers_and_tools_gets_a_replica_on_the_controller(
    cluster: Cluster, process: RegentProcess
) -> None:
    servers = f"--bootstrap-server={cluster.tools.bootstrap_servers}"
    topics = [f"auto-created-{number}" for number in range(2)]
    for topic in topics:
        cluster.tools.run(
            "kafka-console-producer",
            servers,
            f"--topic={topic}",
            stdin="a record\n",
        )
    # A group and a transaction have the internal topics created.
    cluster.tools.run(
        "kafka-console-consumer",
        servers,
        f"--topic={topics[0]}",
        "--group=a-group",
        "--from-beginning",
        "--max-messages=1",
        "--timeout-ms=60000",
    )
    cluster.tools.run(
        "kafka-producer-perf-test",
        f"--topic={topics[0]}",
        "--num-records=100",
        "--record-size=10",
        "--throughput=-1",
        "--transactional-id=a-transaction",
        "--transaction-duration-ms=50",
        "--producer-props",
        f"bootstrap.servers={cluster.tools.bootstrap_servers}",
    )
    # A tool of ZooKeeper's time places replicas on everything that is registered.
    old = KafkaTools(cluster.tools.bootstrap_servers, version="2.4.1")
    by_tool = ["--topic=placed-by-a-tool", f"--zookeeper={cluster.kafka.zookeeper}"]
    old.run("kafka-topics", "--create", "--partitions=6", "--replication-factor=3", *by_tool)
    cluster.wait_in_sync("placed-by-a-tool")
    old.run("kafka-topics", "--alter", "--partitions=12", *by_tool)
    created = [*topics, "placed-by-a-tool", "__consumer_offsets", "__transaction_state"]
    asked = served_requests(process, "AllocateProducerIds")
    assert (asked > 0) is (version_of(cluster) >= ASKS_FOR_PRODUCER_IDS_SINCE)
    ours = controller_id_of(process)
    cluster.wait_in_sync(*created)
    assert len(cluster.znodes.assignment("placed-by-a-tool") or {}) == 12
    for topic in created:
        assignment = cluster.znodes.assignment(topic) or {}
        assert assignment, topic
        for replicas in assignment.values():
            assert ours not in replicas, (topic, assignment)
            factor = 3 if topic == "placed-by-a-tool" else 2
            assert len(set(replicas)) == factor, (topic, assignment)


@OLDEST
def test_a_broker_leads_after_sigterm_and_nothing_is_registered_any_more(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.restore()
    topic = new_topic(cluster)
    with lossless_workload(cluster.tools, topic, tmp_path) as producer:
        with regent(cluster) as process:
            process.wait_until_active()
            producer.wait_for_progress()
            own = f"/brokers/ids/{controller_id_of(process)}"
        assert cluster.znodes.get(own) is None
        assert cluster.znodes.controller() != controller_id_of(process)
        cluster.wait_for_a_broker_as_controller()
        cluster.wait_for_consistency()
        producer.wait_for_progress()
        cluster.broker(2).kill()
        cluster.broker(2).start()
        cluster.wait_in_sync(topic)


@NEWEST
def test_a_regent_that_dies_in_a_controlled_shutdown_loses_nothing(
    cluster: Cluster, process: RegentProcess, tmp_path: Path
) -> None:
    topic = new_topic(cluster, partitions=30)
    with lossless_workload(cluster.tools, topic, tmp_path):
        broker = cluster.broker(1)
        broker.process.terminate()
        cluster.wait(
            lambda: (
                served_requests(process, "ControlledShutdown")
                or any(state["leader"] != 1 for state in states(cluster, topic)[:1])
            ),
            "the shutdown to begin",
            interval_s=0.001,
        )
        cluster.kill_regent(process)
        cluster.wait(lambda: not broker.is_running, "broker 1 to have stopped")
        cluster.wait_for_a_broker_as_controller()
        broker.start()
        cluster.wait_in_sync(topic)
    assert all(each.is_running for each in cluster.kafka.brokers)
