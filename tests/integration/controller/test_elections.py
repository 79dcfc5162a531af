"""Elections on request: by Kafka's own tools, by commands, and by the balance of leaders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from regent.admin.commands import ElectionType
from regent.model.partition import TopicPartition
from regent.protocol.error_codes import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    NONE,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from sandbox import KafkaTools
from tests.support.cluster import Cluster, regent
from tests.support.commands import controller_in_this_process, elect
from tests.support.figures import Figure
from tests.support.soak import versions
from tests.support.workload import consume_all, workload
from tests.support.znodes import forget_follower

pytestmark = [pytest.mark.integration, pytest.mark.slow]

IMBALANCE = "kafka_controller_kafkacontroller_preferredreplicaimbalancecount "


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Callable[[str], list[TopicPartition]]:
    """Creates a topic whose partitions prefer brokers 1, 1 and 2."""

    def create(name: str) -> list[TopicPartition]:
        assignment = "--replica-assignment=1:2:3,1:3:2,2:1:3"
        cluster.tools.topics("--create", f"--topic={name}", assignment)
        cluster.wait_in_sync(name)
        return [TopicPartition(name, partition) for partition in range(3)]

    return create


def restart_broker_1(cluster: Cluster) -> None:
    """It leads nothing afterwards, and is in sync everywhere."""
    cluster.kill_broker(1)
    cluster.broker(1).start()
    cluster.wait_in_sync()


def leaders(cluster: Cluster, partitions: list[TopicPartition]) -> list[int]:
    return [cluster.znodes.state(*tp).get("leader", -1) for tp in partitions]


def wait_for_leaders(
    cluster: Cluster, partitions: list[TopicPartition], expected: list[int]
) -> None:
    cluster.wait(
        lambda: leaders(cluster, partitions),
        f"{partitions[0].topic} to be led by {expected}",
        until=lambda found: found == expected,
    )


@pytest.mark.parametrize("version", versions("2.8.2", others=("1.1.1", "2.4.1")))
def test_kafkas_own_tool_elects_preferred_leaders(
    cluster: Cluster,
    topics: Callable[[str], list[TopicPartition]],
    tmp_path: Path,
    version: str,
) -> None:
    partitions = topics(f"by-tool-{version}")
    tools = KafkaTools(
        cluster.kafka.bootstrap_servers, version=version, zookeeper=cluster.kafka.zookeeper
    )
    listed = tmp_path / "partitions.json"
    listed.write_text(
        json.dumps(
            {"partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]}
        )
    )
    with regent(cluster) as process:
        process.wait_until_active()
        restart_broker_1(cluster)
        before = [cluster.znodes.state(*tp) for tp in partitions]
        assert 1 not in leaders(cluster, partitions)
        address = f"--zookeeper={cluster.kafka.zookeeper}"
        tools.run("kafka-preferred-replica-election", address, f"--path-to-json-file={listed}")
        wait_for_leaders(cluster, partitions, [1, 1, 2])
        after = [cluster.znodes.state(*tp) for tp in partitions]
        raised = [b["leader_epoch"] - a["leader_epoch"] for a, b in zip(before, after, strict=True)]
        assert raised == [
            int(a["leader"] != b["leader"]) for a, b in zip(before, after, strict=True)
        ]
        assert [state["isr"] for state in after] == [state["isr"] for state in before]
        cluster.wait(
            lambda: cluster.znodes.get("/admin/preferred_replica_election") is None,
            "the request to be removed",
        )
        # again, for all partitions of the cluster: those that nobody can elect are no obstacle
        tools.run("kafka-preferred-replica-election", address)
        cluster.wait(
            lambda: cluster.znodes.get("/admin/preferred_replica_election") is None,
            "the second request to be removed",
        )
        cluster.wait_for_consistency()
        assert process.status()["isActive"]  # type: ignore[index]


def test_a_request_that_waits_is_carried_out_by_the_controller_that_takes_over(
    cluster: Cluster, topics: Callable[[str], list[TopicPartition]]
) -> None:
    partitions = topics("by-takeover")
    never_led = {"topic": "never-led", "partition": 0}
    with regent(cluster) as process:
        process.wait_until_active()
        restart_broker_1(cluster)
        cluster.znodes.client.create(
            "/brokers/topics/never-led", b'{"version":1,"partitions":{"0":[8,9]}}'
        )
        cluster.kill_regent(process)
        listed = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
        content = {"version": 1, "partitions": [never_led, *listed]}
        cluster.znodes.client.create(
            "/admin/preferred_replica_election", json.dumps(content).encode()
        )
        with regent(cluster, name="successor") as successor:
            successor.wait_until_active()
            wait_for_leaders(cluster, partitions, [1, 1, 2])
            cluster.wait(
                lambda: cluster.znodes.get("/admin/preferred_replica_election") is None,
                "the request to be removed",
            )
            cluster.znodes.client.delete("/brokers/topics/never-led", recursive=True)
            cluster.wait_for_consistency()


def test_commands_elect_preferred_and_unclean_leaders_with_an_outcome_for_each_partition(
    cluster: Cluster, topics: Callable[[str], list[TopicPartition]]
) -> None:
    preferred = topics("by-command")
    cluster.tools.topics("--create", "--topic=stranded", "--replica-assignment=1:2")
    cluster.tools.topics("--create", "--topic=single", "--replica-assignment=3")
    stranded, single = TopicPartition("stranded", 0), TopicPartition("single", 0)
    unknown = TopicPartition("nobody", 0)
    own = {tp.topic for tp in (*preferred, stranded, single, unknown)}
    cluster.wait_in_sync("stranded", "single")
    with controller_in_this_process(cluster, 1_000_000_777) as service:
        cluster.wait_for_announced_controller()
        forget_follower(cluster.znodes, "stranded", leader=1)
        cluster.kill_broker(1)
        cluster.wait_for_leader("stranded", -1)

        def codes(
            election_type: ElectionType, *partitions: TopicPartition
        ) -> dict[TopicPartition, int]:
            """Without the topics that other tests have left in the cluster."""
            return {
                tp: result.error_code
                for tp, result in elect(service, election_type, *partitions).items()
                if tp.topic in own
            }

        assert codes(ElectionType.PREFERRED, preferred[0], stranded, unknown) == {
            preferred[0]: PREFERRED_LEADER_NOT_AVAILABLE,
            stranded: PREFERRED_LEADER_NOT_AVAILABLE,
            unknown: UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert codes(ElectionType.UNCLEAN, stranded, single) == {
            stranded: NONE,
            single: ELECTION_NOT_NEEDED,
        }
        assert cluster.wait_for_leader("stranded", 2)["isr"] == [2]
        cluster.wait_for_consistency()
        cluster.tools.produce("stranded", ["after the loss"])

        cluster.broker(1).start()
        cluster.wait_in_sync()
        assert codes(ElectionType.PREFERRED, *preferred) == {
            preferred[0]: NONE,
            preferred[1]: NONE,
            preferred[2]: ELECTION_NOT_NEEDED,
        }
        assert leaders(cluster, preferred) == [1, 1, 2]
        cluster.wait_for_consistency()
        # of all partitions: what is elected, and nothing that needed no election
        assert codes(ElectionType.PREFERRED).get(stranded) == NONE
        assert codes(ElectionType.PREFERRED) == {}

        cluster.kill_broker(3)
        cluster.wait_for_leader("single", -1)
        assert codes(ElectionType.UNCLEAN) == {single: ELIGIBLE_LEADERS_NOT_AVAILABLE}
        cluster.broker(3).start()
        cluster.wait_for_leader("single", 3)
        cluster.wait_in_sync()
    cluster.wait_for_a_broker_as_controller()


def test_after_the_restart_of_a_broker_its_leaders_come_back_under_load(
    cluster: Cluster, tmp_path: Path, figure: Figure
) -> None:
    cluster.tools.topics("--create", "--topic=balanced", "--replica-assignment=1:2:3,1:3:2,2:1:3")
    partitions = [TopicPartition("balanced", partition) for partition in range(3)]
    with regent(
        cluster, auto_leader_rebalance_enable=True, leader_imbalance_check_interval_seconds=1
    ) as process:
        process.wait_until_active()
        cluster.wait_in_sync()
        with workload(cluster.tools, "balanced", tmp_path) as producer:
            producer.wait_for_progress()
            cluster.kill_broker(1)
            producer.wait_for_progress()
            cluster.wait(
                lambda: leaders(cluster, partitions),
                "others to lead",
                until=lambda found: not {1, -1} & set(found),
            )
            cluster.broker(1).start()
            wait_for_leaders(cluster, partitions, [1, 1, 2])
            producer.wait_for_progress()
        cluster.wait(
            lambda: f"{IMBALANCE}0.0" in process.metrics(), "every leader to be the preferred one"
        )
        acknowledged, failed = producer.acknowledged(), producer.failed()
        figure("acknowledged under load", len(acknowledged))
        figure("longest time without an acknowledgement", f"{producer.longest_gap_ms()} ms")
        assert failed == []
        assert set(acknowledged) <= set(consume_all(cluster.tools, "balanced"))
