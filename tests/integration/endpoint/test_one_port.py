"""Brokers with two listeners of one security protocol, and a Regent with one port."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.support.cluster import Cluster, controller_id_of, regent

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TIMEOUT_S = 90
SEEN_BY_CLIENTS: dict[str, Any] = {"endpoint_announced_listeners": "BROKERS,PLAINTEXT"}

_numbers = itertools.count(1)


def test_listeners_that_one_port_cannot_serve_are_named_before_a_client_fails(
    cluster: Cluster,
) -> None:
    with regent(cluster, **SEEN_BY_CLIENTS) as process:
        process.wait_until_active()
        said = cluster.wait(
            lambda: process.get("/readyz"), "the problem", until=lambda text: text != "ok\n"
        )
        assert said.startswith("ok, but clients of the listeners BROKERS, PLAINTEXT cannot use")
        assert "endpoint_further_listeners" in said
        status = process.status()
        assert status is not None
        assert status["endpoint"]["problem"] in said
        assert "regent_endpoint_connections_accepted_total 0.0" in process.metrics()


@pytest.mark.parametrize(
    "remedy",
    [
        {"endpoint_further_listeners": "PLAINTEXT://127.0.0.1:0"},
        {"endpoint_listener": "PLAINTEXT"},
    ],
)
def test_clients_create_topics_with_either_remedy(cluster: Cluster, remedy: dict[str, Any]) -> None:
    with regent(cluster, **SEEN_BY_CLIENTS, **remedy) as process:
        process.wait_until_active()
        for broker in cluster.running:
            cluster.wait(
                lambda broker_id=broker.broker_id: cluster.metadata(broker_id).brokers,  # type: ignore[misc]
                "Regent to be announced",
                until=lambda brokers: controller_id_of(process) in brokers,
            )
        admin = AdminClient({"bootstrap.servers": cluster.kafka.bootstrap_servers})
        topics = [NewTopic(f"one-port-{next(_numbers)}", 1, 3) for _ in range(5)]
        for created in admin.create_topics(topics, request_timeout=TIMEOUT_S).values():
            created.result(TIMEOUT_S)
        assert process.get("/readyz") == "ok\n"
