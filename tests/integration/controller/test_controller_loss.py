"""Regent is killed while a producer writes: nothing is lost, and it takes the cluster back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, controller_id_of, regent
from tests.support.figures import Figure
from tests.support.resources import Resources, topic
from tests.support.workload import consume_all, workload

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_a_killed_regent_costs_no_acknowledged_message_and_takes_the_cluster_back(
    cluster: Cluster, resources: Resources, tmp_path: Path, figure: Figure
) -> None:
    znodes = cluster.znodes
    epoch = znodes.controller_epoch()
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as process:
        process.wait_until_active()
        taken_over = znodes.controller_epoch()
        assert taken_over > epoch
        resources.apply(topic("ledger", config={"min.insync.replicas": 2}))
        resources.wait_ready("ledger")

        with workload(cluster.tools, "ledger", tmp_path) as producer:
            producer.wait_for_progress()
            gone = znodes.watch("/controller")
            cluster.kill_regent(process)

            broker_id = cluster.wait_for_a_broker_as_controller()
            announced_at = time.monotonic()
            expired_at = gone.wait("the end of the session")
            figure(
                "a broker controller known to all brokers after another",
                f"{(announced_at - expired_at) * 1000:.0f} ms",
            )
            assert broker_id in cluster.broker_ids
            lost = znodes.controller_epoch()
            assert lost > taken_over

            resources.apply(topic("meanwhile", partitions=2))
            producer.wait_for_progress()
            assert znodes.assignment("meanwhile") is None

            started_at = time.monotonic()
            process.start()
            process.wait_until_active()
            assert cluster.wait_for_announced_controller() == controller_id_of(process)
            figure("restarted and the controller after", f"{time.monotonic() - started_at:.1f} s")
            taken_back = znodes.controller_epoch()
            assert taken_back > lost

            resources.wait_ready("meanwhile")
            assert sorted(znodes.assignment("meanwhile") or {}) == [0, 1]
            producer.wait_for_progress()

        acknowledged = producer.acknowledged()
        figure("acknowledged messages", len(acknowledged))
        figure("longest time between two acknowledgements", f"{producer.longest_gap_ms()} ms")
        assert not producer.failed()
        assert not acknowledged.keys() - set(consume_all(cluster.tools, "ledger"))

    cluster.wait_for_a_broker_as_controller()
    assert znodes.controller_epoch() > taken_back


def test_a_regent_that_dies_together_with_a_leader_costs_no_acknowledged_message(
    cluster: Cluster, resources: Resources, tmp_path: Path, figure: Figure
) -> None:
    znodes = cluster.znodes
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as process:
        process.wait_until_active()
        resources.apply(topic("journal", config={"min.insync.replicas": 2}))
        resources.wait_ready("journal")
        victim = znodes.state("journal")["leader"]
        epoch = znodes.controller_epoch()

        with workload(cluster.tools, "journal", tmp_path) as producer:
            producer.wait_for_progress()
            cluster.kill_regent(process)
            cluster.kill_broker(victim)
            cluster.wait_for_a_broker_as_controller()
            cluster.wait(
                lambda: {state["leader"] for state in znodes.states("journal").values()},
                "the others to lead",
                until=lambda leaders: not leaders & {victim, -1},
            )
            producer.wait_for_progress()

            cluster.broker(victim).launch()
            process.start()
            process.wait_until_active()
            assert znodes.controller_epoch() >= epoch + 2
            cluster.broker(victim).wait_until_ready()
            cluster.wait_in_sync("journal")
            producer.wait_for_progress()

        figure("acknowledged messages", len(producer.acknowledged()))
        figure("longest time between two acknowledgements", f"{producer.longest_gap_ms()} ms")
        assert not producer.failed()
        lost = producer.acknowledged().keys() - set(consume_all(cluster.tools, "journal"))
        assert not lost
        cluster.wait_for_consistency()


def test_when_all_brokers_have_failed_the_first_that_returns_leads(cluster: Cluster) -> None:
    """As after a power failure, when Regent is back before them."""
    cluster.restore()
    cluster.tools.topics("--create", "--topic=outage", "--replica-assignment=1:2:3,2:3:1,3:1:2")
    cluster.wait_in_sync("outage")
    records = [f"record {number}" for number in range(30)]
    cluster.tools.produce("outage", records)
    try:
        cluster.kill_broker(*cluster.broker_ids)
        with regent(cluster) as process:
            process.wait_until_active()
            for partition in range(3):
                state = cluster.wait_for_leader("outage", -1, partition)
                assert sorted(state["isr"]) == [1, 2, 3]
            cluster.broker(1).start()
            for partition in range(3):
                cluster.wait_for_leader("outage", 1, partition)
            cluster.kafka.start()
            cluster.wait_in_sync("outage")
            assert sorted(cluster.tools.consume("outage", len(records))) == sorted(records)
    finally:
        cluster.restore()
