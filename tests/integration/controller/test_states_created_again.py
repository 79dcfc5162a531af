"""Somebody deletes a partition's state and creates it again: its version begins at 0, and brokers
skip what has a lower one than they know. They answer without an error."""

from __future__ import annotations

import pytest

from sandbox.kafka_jars import DEFAULT_VERSION
from tests.support.cluster import Cluster, regent
from tests.support.clusters import Clusters
from tests.support.soak import soak
from tests.support.znodes import state_path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "copied"
SET_BACK = "States of partitions were created again"


@pytest.fixture(params=[pytest.param("write ISRs", marks=soak("controller")), "ask for ISRs"])
def brokers(
    request: pytest.FixtureRequest, kafka_and_znodes: Cluster, clusters: Clusters
) -> Cluster:
    if request.param == "ask for ISRs":
        return clusters.healthy(DEFAULT_VERSION)
    kafka_and_znodes.clear()
    return kafka_and_znodes


def version_of(cluster: Cluster) -> int:
    found = cluster.znodes.get(state_path(TOPIC))
    assert found is not None
    return found[1].version


def create_again(cluster: Cluster) -> None:
    path = state_path(TOPIC)
    found = cluster.znodes.get(path)
    assert found is not None
    transaction = cluster.znodes.client.transaction()
    transaction.delete(path)
    transaction.create(path, found[0])
    transaction.commit()
    assert version_of(cluster) == 0


def test_a_new_leader_leads(brokers: Cluster) -> None:
    cluster = brokers
    with regent(cluster) as process:
        process.wait_until_active()
        cluster.znodes.create_topic(TOPIC, {0: [1, 2, 3]})
        cluster.wait_in_sync(TOPIC)
        for _ in range(2):  # leaders and followers hear of versions by which the ISR changes
            cluster.kill_broker(3)
            cluster.wait(
                lambda: cluster.znodes.state(TOPIC), "the ISR", until=lambda s: 3 not in s["isr"]
            )
            cluster.broker(3).start()
            cluster.wait_in_sync(TOPIC)
        known = version_of(cluster)
        assert known >= 4

        create_again(cluster)
        cluster.kill_broker(1)
        cluster.wait_for_leader(TOPIC, 2)
        assert version_of(cluster) > known
        cluster.broker(1).start()
        cluster.wait_in_sync(TOPIC)  # who takes broker 1 in leads
        assert cluster.znodes.state(TOPIC)["leader"] == 2
        (said,) = [entry for entry in process.log_entries() if SET_BACK in entry["message"]]
        assert said["partitions"] == 1
        cluster.wait_for_consistency()


def test_a_state_that_was_deleted_keeps_nobody_from_leading(brokers: Cluster) -> None:
    cluster, topic = brokers, "deleted"
    with regent(cluster) as process:
        process.wait_until_active()
        cluster.znodes.create_topic(topic, {0: [1, 2, 3]})
        cluster.wait_in_sync(topic)
        cluster.tools.produce(topic, ["before"])
        before = cluster.znodes.state(topic)

        cluster.znodes.client.delete(state_path(topic))
        cluster.kill_broker(1)
        cluster.wait_for_leader(topic, 2)
        assert cluster.znodes.state(topic)["leader_epoch"] == before["leader_epoch"] + 1
        cluster.tools.produce(topic, ["after"])
        cluster.broker(1).start()
        cluster.wait_in_sync(topic)
        assert cluster.tools.consume(topic, 2) == ["before", "after"]
        cluster.wait_for_consistency()
