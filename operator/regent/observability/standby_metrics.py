"""Metrics of the standby's copy of the cluster's state. Kafka has nothing of the kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from regent.standby.status import StandbyPhase, StandbyStatus

_GAUGES: Final = {
    "znodes": "Znodes that the standby's cache was made of.",
    "partitions": "Partitions in the standby's cache.",
    "dirty": "Znodes of the standby's cache that are to be read again.",
    "malformed": "Znodes that the standby's cache leaves out: they cannot be decoded or read.",
}
_COUNTERS: Final = {
    "copies": "Take-overs of this process that have loaded the standby's cache.",
    "refreshes": "Readings for the standby's cache.",
    "bytes_read": "Data that these readings have brought, in bytes.",
    "loads": "How often everything was read for the standby's cache.",
    "self_checks": "How often the standby's cache was compared with ZooKeeper.",
    "differences": "Znodes in which it differed then. Any is a defect.",
}


class StandbyStatistics(Protocol):
    """What the collector reads, from any thread."""

    @property
    def standby(self) -> StandbyStatus | None: ...

    @property
    def suspicions(self) -> Mapping[str, int]: ...

    @property
    def unheard_replicas(self) -> int: ...


class StandbyCollector(Collector):
    """Reads the keeper's numbers at the moment of the scrape."""

    def __init__(self, statistics: StandbyStatistics) -> None:
        self._statistics = statistics

    def collect(self) -> Iterable[Metric]:
        """Metrics as they are now."""
        status = self._statistics.standby or StandbyStatus()
        yield GaugeMetricFamily(
            "regent_standby_current",
            "1 while the standby's cache follows ZooKeeper, else 0.",
            value=status.phase is StandbyPhase.CURRENT,
        )
        for field, help_text in _GAUGES.items():
            yield GaugeMetricFamily(
                f"regent_standby_{field}", help_text, value=getattr(status, field)
            )
        for field, help_text in _COUNTERS.items():
            yield CounterMetricFamily(
                f"regent_standby_{field}", help_text, value=getattr(status, field)
            )
        suspicions = CounterMetricFamily(
            "regent_replica_suspicions",
            "How often this replica has held another one to be dead or frozen.",
            labels=["reason"],
        )
        for reason, count in self._statistics.suspicions.items():
            suspicions.add_metric([reason], count)
        yield suspicions
        yield GaugeMetricFamily(
            "regent_replicas_unheard",
            "Other replicas that are registered and do not answer, without being suspected.",
            value=self._statistics.unheard_replicas,
        )
