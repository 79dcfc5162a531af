"""Client mode while the broker that is the controller hangs: only what it is asked waits."""

from __future__ import annotations

import time

import pytest

from sandbox import KubernetesApi
from tests.integration.controller.test_client_mode import assign, reassignment
from tests.support.cluster import regent
from tests.support.clusters import Clusters
from tests.support.reassigning import create_topic
from tests.support.resources import Resources, topic

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SOON_S = 30.0
"""An answer is waited for 40 seconds."""


def test_only_what_it_is_asked_waits_for_it(clusters: Clusters, kubernetes: KubernetesApi) -> None:
    cluster = clusters.healthy("3.9.1").in_client_mode()
    topics = Resources(kubernetes, "hung-controller")
    moves = topics.of("reassignment")
    controller_id = cluster.wait_for_announced_controller()
    one, other = (b for b in cluster.broker_ids if b != controller_id)
    create_topic(cluster, "moved", {0: [one]})
    topics.apply(topic("there", partitions=1, replicas=1))
    with regent(cluster, kubeconfig=kubernetes.kubeconfig, namespace="hung-controller") as process:
        topics.wait_ready("there")
        # what is asked on a connection that is open is waited for longest
        moves.apply(reassignment("away", assignments=assign("moved", {0: [other]})))
        moves.wait_until_true("away", "Completed")
        cluster.broker(controller_id).pause()
        try:
            moves.apply(reassignment("back", assignments=assign("moved", {0: [one]})))
            moves.wait_for_status("back", "to begin", phase="Executing")
            topics.apply(topic("new", partitions=1, replicas=1))
            topics.patch("there", config={"retention.ms": 70_000})
            cluster.wait(
                lambda: (
                    "new" in cluster.znodes.topics()
                    and cluster.znodes.config("there") == {"retention.ms": "70000"}
                ),
                "topics to be served",
                timeout_s=SOON_S,
            )
            topics.wait_for_status("new", "to be seen", partitions=1)
            assert (process.status() or {}).get("eventQueueSize") == 1
            began = time.monotonic()
            process.stop()
            assert time.monotonic() - began < SOON_S
            assert process.process.exit_code == 0
        finally:
            cluster.broker(controller_id).resume()
        process.start()
        moves.wait_until_true("back", "Completed")
