"""Metrics of the server of Kafka's protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX = "regent_endpoint_"


class ServerStatistics(Protocol):
    """What the collector reads. May be read from any thread; no mapping ever gets another key."""

    @property
    def connections(self) -> int: ...

    @property
    def requests_in_progress(self) -> int: ...

    @property
    def buffered_bytes(self) -> int: ...

    @property
    def accepted(self) -> int: ...

    @property
    def closed(self) -> Mapping[Any, int]:
        """Connections by the reason (an enum) for which they were closed."""
        ...

    @property
    def requests(self) -> Mapping[str, int]:
        """Requests by API."""
        ...

    @property
    def throttled(self) -> int: ...

    @property
    def failed_authentications(self) -> int: ...

    @property
    def upstream_connections(self) -> int: ...

    @property
    def failed_upstream_connections(self) -> int: ...


_GAUGES = {
    "connections": "Open connections of brokers and clients.",
    "requests_in_progress": "Requests that are processed.",
    "upstream_connections": "Connections to brokers by which clients' requests are passed on.",
    "buffered_bytes": "Bytes of requests that have not been processed yet.",
}
_COUNTERS = {
    "accepted": ("connections_accepted", "Connections that were accepted."),
    "throttled": ("requests_throttled", "Requests that waited for the rate of their address."),
    "failed_authentications": (
        "failed_authentications",
        "Clients that failed to authenticate, by TLS or SASL.",
    ),
    "failed_upstream_connections": (
        "upstream_connections_failed",
        "Attempts to connect to a broker for a client that failed.",
    ),
}


class ServerCollector(Collector):
    """Reads the server's counters at the moment of the scrape."""

    def __init__(self, statistics: ServerStatistics) -> None:
        self._statistics = statistics

    def collect(self) -> Iterable[Metric]:
        """Metrics as they are now."""
        statistics = self._statistics
        for field, text in _GAUGES.items():
            yield GaugeMetricFamily(f"{PREFIX}{field}", text, value=getattr(statistics, field))
        for field, (name, text) in _COUNTERS.items():
            yield CounterMetricFamily(f"{PREFIX}{name}", text, value=getattr(statistics, field))
        closed = CounterMetricFamily(
            f"{PREFIX}connections_closed", "Connections that were closed.", labels=["reason"]
        )
        for reason, count in statistics.closed.items():
            closed.add_metric([reason.value], count)
        yield closed
        requests = CounterMetricFamily(
            f"{PREFIX}requests", "Requests that could be read.", labels=["api"]
        )
        for api, count in statistics.requests.items():
            requests.add_metric([api], count)
        yield requests
