"""A leader whose log is of another topic of that name does not keep the partition from clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regent.zk_data import paths
from tests.support.cluster import Cluster, cluster_of, regent

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAME = "here"
RECORDS = [f"record {number}" for number in range(100)]
FORMER_ID = "AAAAAAAAAAAAAAAAAAAATQ"


def test_another_replica_leads_and_no_record_is_lost() -> None:
    with cluster_of("3.9.1", inter_broker_protocol=None) as cluster:
        cluster.wait_for_a_broker_as_controller()
        cluster.tools.topics("--create", f"--topic={NAME}", "--replica-assignment=1:2:3")
        cluster.wait_in_sync(NAME)
        cluster.tools.produce(NAME, RECORDS)
        make_it_another_topic(cluster, broker_id=1)
        before = cluster.znodes.state(NAME)
        assert (before["leader"], before["isr"]) == (1, [1, 2, 3])
        with regent(cluster) as process:
            process.wait_until_active()
            state = cluster.wait(
                lambda: cluster.znodes.state(NAME),
                "another replica to lead",
                until=lambda state: state["leader"] != 1,
            )
            assert 1 not in state["isr"]
            assert cluster.tools.consume(NAME, len(RECORDS)) == RECORDS


def make_it_another_topic(cluster: Cluster, broker_id: int) -> None:
    """All brokers crash. One comes back with the log of another topic of that name, and no broker's
    controller acts meanwhile."""
    cluster.kill_broker(*cluster.broker_ids)
    cluster.wait(lambda: cluster.znodes.controller() is None, "the controller to be gone")
    holder = {"version": 1, "brokerid": 77, "timestamp": "1"}
    cluster.znodes.client.create(paths.CONTROLLER, json.dumps(holder).encode(), ephemeral=True)
    log_dir = Path(str(cluster.broker(broker_id).config["log.dirs"]))
    (log_dir / f"{NAME}-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {FORMER_ID}")
    for broker in cluster.kafka.brokers:
        broker.launch()
    cluster.wait(
        lambda: cluster.znodes.broker_ids() == cluster.broker_ids, "the brokers to register"
    )
