"""How many log entries were dropped: where the log is not read, only this says so."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from regent.observability.log_stream import UnblockedHandler


class LogCollector(Collector):
    """Reads the handler's counter at the moment of the scrape."""

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler

    def collect(self) -> Iterable[Metric]:
        """The metric as it is now. A handler that waits for its stream drops nothing."""
        handler = self._handler
        yield CounterMetricFamily(
            "regent_log_entries_dropped",
            "Log entries that were not written, as nobody read what was written before.",
            value=handler.dropped if isinstance(handler, UnblockedHandler) else 0,
        )
