"""Brokers with two listeners of one security protocol, and a Regent with one port."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster import Cluster, regent

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SEEN_BY_CLIENTS: dict[str, Any] = {"endpoint_announced_listeners": "BROKERS,PLAINTEXT"}


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
