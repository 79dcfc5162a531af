"""Prometheus metrics of the custom resources."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class ResourceMetrics:
    """Counts what people have to be woken for. One for the life of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._foreign_deletions = Counter(
            "regent_kafkatopic_foreign_deletions",
            "Topics of KafkaTopics that somebody else deleted, or deleted and created again: their "
            "data is lost.",
            registry=registry,
        )

    def count_foreign_deletion(self) -> None:
        """A resource has lost its topic."""
        self._foreign_deletions.inc()
