"""A log directory of a real broker fails: its leaders move, and its replicas return with it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from regent.zk_data.stray_replicas import strays_on
from sandbox import KafkaTools
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.figures import Figure
from tests.support.log_directory import LogDirectory
from tests.support.reassigning import wait_for_hosts
from tests.support.soak import versions
from tests.support.workload import consume_all, workload
from tests.support.znodes import state_path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "striped"
PARTITIONS = range(4)


@pytest.fixture(scope="module", params=versions("3.9.1", others=("1.1.1", "2.4.1")))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Brokers with two log directories, which notice a failed one by the next checkpoint."""
    with cluster_of(
        request.param, log_directories=2, replica_high_watermark_checkpoint_interval_ms=500
    ) as started:
        yield started


def test_what_a_broker_is_to_delete_outlives_its_start_without_the_disk(cluster: Cluster) -> None:
    znodes = cluster.znodes
    directory = LogDirectory(cluster, 1)
    with regent(cluster) as process:
        process.wait_until_active()
        for topic in ("removed", "staying"):
            znodes.client.create(
                f"/brokers/topics/{topic}", b'{"version":1,"partitions":{"0":[1,2],"1":[1,2]}}'
            )
            cluster.wait_for_leader(topic, 1)
        cluster.wait_in_sync()
        held = cluster.wait(
            lambda: [p for p in range(2) if directory.holds("removed", p)],
            "the broker to create a replica in its second log directory",
        )

        cluster.kill_broker(1)
        znodes.client.create("/admin/delete_topics/removed")
        cluster.wait(lambda: znodes.assignment("removed") is None, "the deletion to be over")
        directory.fail()
        cluster.broker(1).start()
        cluster.wait(
            lambda: '"Notes about stray replicas kept' in process.process.log_of_this_run(),
            "the broker to say that it lacks a log directory",
        )
        assert znodes.children(strays_on(1)) == ["removed"]

        cluster.kill_broker(1)
        directory.mend()
        assert [p for p in range(2) if directory.holds("removed", p)] == held
        cluster.broker(1).start()
        cluster.wait(
            lambda: znodes.children(strays_on(1)),
            "the rest to be deleted",
            until=lambda notes: not notes,
        )
        assert not any(directory.holds("removed", partition) for partition in range(2))
        cluster.wait_in_sync("staying")


def test_leaders_leave_a_failed_log_directory_and_its_replicas_return_after_a_restart(
    cluster: Cluster, tmp_path: Path, figure: Figure
) -> None:
    znodes = cluster.znodes
    tools = KafkaTools(cluster.kafka.bootstrap_servers)
    directory = LogDirectory(cluster, 1)
    tools.topics("--create", f"--topic={TOPIC}", "--replica-assignment=1:2:3,1:3:2,1:2:3,1:3:2")
    tools.topics("--create", "--topic=leaving", "--replica-assignment=1:2,1:2")
    with regent(cluster) as process:
        process.wait_until_active()
        cluster.wait_in_sync()
        # In sync is what a new state says, also before a broker has created its replica.
        wait_for_hosts(cluster, {(TOPIC, p): [1, 2, 3] for p in PARTITIONS})
        failed = [p for p in PARTITIONS if directory.holds(TOPIC, p)]
        healthy = [p for p in PARTITIONS if p not in failed]
        assert failed
        assert healthy

        with workload(tools, TOPIC, tmp_path) as producer:
            producer.wait_for_progress()
            before = znodes.states(TOPIC)
            reported = znodes.watch("/log_dir_event_notification/log_dir_event_0000000000")
            moved = [znodes.watch(state_path(TOPIC, partition)) for partition in failed]
            directory.fail()
            began = reported.wait("the broker's report")
            figure(
                "from the broker's report to the last new leader in ZooKeeper",
                f"{(max(m.wait('a new leader') for m in moved) - began) * 1000:.0f} ms",
            )
            for partition in failed:
                state = cluster.wait(
                    partial(znodes.state, TOPIC, partition),
                    f"{TOPIC}-{partition} to leave broker 1",
                    until=lambda state: state["leader"] in (2, 3) and 1 not in state["isr"],
                )
                assert sorted(state["isr"]) == [2, 3]
                # one epoch for the new leader, which takes broker 1 out of the ISR as well
                assert state["leader_epoch"] == before[TOPIC, partition]["leader_epoch"] + 1
            producer.wait_for_progress()
            for partition in healthy:
                assert znodes.state(TOPIC, partition) == before[TOPIC, partition]
            cluster.wait_for_consistency()
            cluster.wait(
                lambda: znodes.children("/log_dir_event_notification"),
                "the report to be removed",
                until=lambda left: not left,
            )
            assert "kafkacontroller_offlinepartitionscount 0.0" in process.metrics()

            # the broker lives on: new replicas go to its other directory
            znodes.client.create(
                "/brokers/topics/meanwhile", b'{"version":1,"partitions":{"0":[1,2]}}'
            )
            assert cluster.wait_for_leader("meanwhile", 1)["isr"] == [1, 2]
            # what is out of reach is deleted when the disk is back
            znodes.client.create("/admin/delete_topics/leaving")
            cluster.wait(lambda: znodes.assignment("leaving") is None, "the deletion to be over")
            assert znodes.children(strays_on(1)) == ["leaving"]

            cluster.kill_broker(1)
            directory.mend()
            cluster.broker(1).start()
            cluster.wait_in_sync(TOPIC, "meanwhile")
            cluster.wait(
                lambda: znodes.children(strays_on(1)),
                "the rest to be deleted",
                until=lambda notes: not notes,
            )
            producer.wait_for_progress()
        cluster.wait_for_consistency()
        assert all(directory.holds(TOPIC, partition) for partition in failed)
        assert not any(directory.holds("leaving", partition) for partition in range(2))
        acknowledged = producer.acknowledged()
        figure("longest time without an acknowledgement", f"{producer.longest_gap_ms()} ms")
        assert producer.failed() == []
        assert set(acknowledged) <= set(consume_all(tools, TOPIC))
