"""A broker that is alive, in sync, and out of the controller's reach, with real brokers."""

from __future__ import annotations

import json

import pytest

from regent.model.partition import TopicPartition
from sandbox.regent_process import RegentProcess
from tests.integration.controller.test_elections import (
    leaders,
    restart_broker_1,
    wait_for_leaders,
)
from tests.integration.controller.test_why import why
from tests.support.cluster import Cluster, regent

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CHECKS = "kafka_controller_controllerstats_autoleaderbalancerateandtimems_count "
LED = TopicPartition("led", 0)


def test_no_leader_is_moved_to_a_broker_that_would_not_learn_of_it(cluster: Cluster) -> None:
    cluster.tools.topics("--create", "--topic=led", "--replica-assignment=1:2:3")
    with regent(cluster) as process:
        process.wait_until_active()
        restart_broker_1(cluster)
    former = cluster.znodes.json("/brokers/ids/1")
    assert leaders(cluster, [LED]) != [1]
    led_by = leaders(cluster, [LED])
    elsewhere = {"port": 1, "endpoints": ["PLAINTEXT://127.0.0.1:1"]}
    register(cluster, former | elsewhere)
    with regent(
        cluster, auto_leader_rebalance_enable=True, leader_imbalance_check_interval_seconds=1
    ) as process:
        process.wait_until_active()
        cluster.wait(lambda: checks(process) >= 3, "the balance of leaders to be checked")
        assert leaders(cluster, [LED]) == led_by
        cluster.wait(
            lambda: (
                "Broker 1 has not been informed that it is to follow it"
                in why(cluster, process, "led-0")
            ),
            "regent why to name the broker that has not been informed",
        )
        assert "PLAINTEXT://127.0.0.1:1: Connect" in why(cluster, process, "led-0")
        register(cluster, former)
        wait_for_leaders(cluster, [LED], [1])
        assert "not been informed" not in why(cluster, process, "led-0")


def register(cluster: Cluster, registration: dict[str, object]) -> None:
    """Have broker 1 be where it says it is, or elsewhere."""
    cluster.znodes.client.set("/brokers/ids/1", json.dumps(registration).encode())


def checks(process: RegentProcess) -> int:
    """How often the balance of leaders was checked."""
    lines = process.metrics().splitlines()
    return sum(int(float(line.removeprefix(CHECKS))) for line in lines if line.startswith(CHECKS))
