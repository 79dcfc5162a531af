"""A broker that leads very many partitions stops."""

from __future__ import annotations

import pytest

from sandbox.regent_process import RegentProcess
from tests.integration.endpoint.stopping import (
    assert_stopped_cleanly_at_the_first_attempt,
    led_by,
    shutdown_request_ms,
)
from tests.support.cluster import Cluster
from tests.support.figures import Figure
from tests.support.reassigning import create_topic
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("endpoint")]

TOPIC = "led-by-1"
PARTITIONS = 1_000


def test_a_broker_that_leads_1000_partitions_stops_cleanly_at_the_first_attempt(
    cluster: Cluster, process: RegentProcess, figure: Figure
) -> None:
    create_topic(cluster, TOPIC, {p: [1, 2] for p in range(PARTITIONS)})
    led = {(TOPIC, p) for p in range(PARTITIONS)}
    assert led <= {*led_by(cluster, 1)}
    cluster.broker(1).stop()
    assert_stopped_cleanly_at_the_first_attempt(cluster.broker(1))
    assert led <= {*led_by(cluster, 2)}
    figure(
        f"controlled shutdown of a leader of {PARTITIONS} partitions",
        f"{shutdown_request_ms(cluster.broker(1))} ms",
    )
    cluster.broker(1).start()
    cluster.wait_in_sync()
    cluster.wait_for_consistency()
