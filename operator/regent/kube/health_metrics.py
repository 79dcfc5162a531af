"""Prometheus metrics of the Kubernetes side's health, read when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from regent.kube.health import KubeHealth


class KubeHealthCollector(Collector):
    """Reads the health at the moment of the scrape."""

    def __init__(self, health: KubeHealth) -> None:
        self._health = health

    def collect(self) -> Iterable[Metric]:
        """Metrics as they are now."""
        yield CounterMetricFamily(
            "regent_kubernetes_side_restarts",
            "How often a defect restarted the Kubernetes side.",
            value=self._health.restarts,
        )
        yield GaugeMetricFamily(
            "regent_kubernetes_side_problem",
            "1 while custom resources are not served reliably after a defect, else 0.",
            value=int(self._health.problem() is not None),
        )
        yield GaugeMetricFamily(
            "regent_kafkatopics_unlisted",
            "1 while resources of a kind cannot be listed, for instance without its CRD, else 0.",
            value=int(self._health.unlisted is not None),
        )
        yield GaugeMetricFamily(
            "regent_lease_unkept",
            "1 while the Lease cannot be kept: without a controller statuses stay as they are.",
            value=int(self._health.unkept_lease is not None),
        )
        unreadable = GaugeMetricFamily(
            "regent_namespace_unreadable",
            "1 for each namespace whose resources of some kind this replica may not read.",
            labels=["namespace"],
        )
        for namespace in self._health.unreadable:
            unreadable.add_metric([namespace], 1)
        yield unreadable
        unwritable = GaugeMetricFamily(
            "regent_namespace_unwritable",
            "1 for each namespace in which this replica may not write finalizers or statuses, or "
            "not get single resources.",
            labels=["namespace"],
        )
        for namespace in self._health.unwritable:
            unwritable.add_metric([namespace], 1)
        yield unwritable
