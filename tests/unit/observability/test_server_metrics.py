from __future__ import annotations

from prometheus_client import CollectorRegistry

from regent.network.server_statistics import CloseReason, statistics_of
from regent.observability.server_metrics import ServerCollector


def test_everything_that_the_server_counts_is_a_metric() -> None:
    statistics = statistics_of(["ApiVersions", "AlterPartition"])
    registry = CollectorRegistry()
    registry.register(ServerCollector(statistics))
    statistics.connections = 3
    statistics.requests_in_progress = 1
    statistics.buffered_bytes = 4096
    statistics.accepted = 9
    statistics.throttled = 2
    statistics.failed_authentications = 4
    statistics.upstream_connections = 6
    statistics.failed_upstream_connections = 8
    statistics.closed[CloseReason.MALFORMED] = 5
    statistics.requests["AlterPartition"] = 7

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"regent_endpoint_{name}", labels)

    assert value("connections") == 3
    assert value("requests_in_progress") == 1
    assert value("buffered_bytes") == 4096
    assert value("connections_accepted_total") == 9
    assert value("requests_throttled_total") == 2
    assert value("failed_authentications_total") == 4
    assert value("upstream_connections") == 6
    assert value("upstream_connections_failed_total") == 8
    assert value("connections_closed_total", reason="malformed request") == 5
    assert value("connections_closed_total", reason="idle") == 0
    assert value("requests_total", api="AlterPartition") == 7
    assert value("requests_total", api="ApiVersions") == 0
