"""A leader loses its disk and is started again while nobody leads: its followers keep what it has
lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, regent
from tests.support.clusters import Clusters
from tests.support.reassigning import create_topic
from tests.support.soak import versions
from tests.support.workload import consume_all, workload

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "ledger"


@pytest.mark.parametrize("version", versions("3.9.1", others=("1.1.1", "2.4.1", "2.8.2")))
def test_what_it_has_lost_its_followers_keep(
    version: str, clusters: Clusters, tmp_path: Path
) -> None:
    cluster = clusters.healthy(version)
    with regent(cluster) as process:
        process.wait_until_active()
        create_topic(cluster, TOPIC, {0: [2, 3]})
        with workload(cluster.tools, TOPIC, tmp_path) as producer:
            producer.wait_for_progress()
        session_id = cluster.controller_session()
        process.kill()
        let_nobody_lead(cluster)
        cluster.end_session(session_id)
        lose_the_disk(cluster, 2)
        assert cluster.znodes.state(TOPIC) | {"leader": 2, "isr": [2, 3]} == (
            cluster.znodes.state(TOPIC)
        )
        process.start()
        process.wait_until_active()
        cluster.wait_for_leader(TOPIC, 3)
        cluster.wait_in_sync(TOPIC)
        cluster.wait_for_consistency()
        acknowledged = producer.acknowledged()
        assert acknowledged
        assert not acknowledged.keys() - set(consume_all(cluster.tools, TOPIC))


def let_nobody_lead(cluster: Cluster) -> None:
    """Hold ``/controller``, so that no broker is elected."""
    transaction = cluster.znodes.client.transaction()
    transaction.delete("/controller")
    content = {"version": 1, "brokerid": 4711, "timestamp": "1"}
    transaction.create("/controller", json.dumps(content).encode(), ephemeral=True)
    assert transaction.commit()[1] == "/controller"


def lose_the_disk(cluster: Cluster, broker_id: int) -> None:
    """Kill a broker, empty its log directory, and start it again."""
    cluster.kill_broker(broker_id)
    broker = cluster.broker(broker_id)
    for directory in broker.state_path.glob("data*"):
        shutil.rmtree(directory)
    broker.start()
