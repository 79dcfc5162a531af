"""A broker that leads very many partitions stops."""

from __future__ import annotations

import pytest

from tests.integration.controller.cluster import cluster_of, regent
from tests.integration.controller.reassigning import create_topic
from tests.integration.endpoint.stopping import (
    assert_stopped_cleanly_at_the_first_attempt,
    led_by,
    shutdown_request_ms,
)
from tests.support.figures import Figure

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PARTITIONS = 1_000


def test_a_broker_that_leads_1000_partitions_stops_cleanly_at_the_first_attempt(
    figure: Figure,
) -> None:
    with cluster_of("3.9.1", inter_broker_protocol=None) as cluster:
        cluster.wait_for_a_broker_as_controller()
        with regent(cluster) as process:
            process.wait_until_active()
            create_topic(cluster, "led-by-1", {p: [1, 2] for p in range(PARTITIONS)})
            assert len(led_by(cluster, 1)) == PARTITIONS
            cluster.broker(1).stop()
            assert_stopped_cleanly_at_the_first_attempt(cluster.broker(1))
            assert len(led_by(cluster, 2)) == PARTITIONS
            figure(
                f"controlled shutdown of a leader of {PARTITIONS} partitions",
                f"{shutdown_request_ms(cluster.broker(1))} ms",
            )
            cluster.broker(1).start()
            cluster.wait_in_sync()
            cluster.wait_for_consistency()
