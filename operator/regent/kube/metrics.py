"""Prometheus metrics of the custom resources and of the requests to the API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from platform import python_version
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, Info
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

RESULTS: Final = ("done", "requeued", "api_error", "defect")
"""What comes of a reconciliation: nothing is left to do, it is repeated after a while, the API
server did not serve, the program failed."""

_KINDS: Final = ("KafkaTopic", "PartitionReassignment", "BrokerDrain")
_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)


class ResourceMetrics:
    """Counts what happens. One for the life of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._foreign_deletions = Counter(
            "regent_kafkatopic_foreign_deletions",
            "Topics of KafkaTopics that somebody else deleted, or deleted and created again: their "
            "data is lost.",
            registry=registry,
        )
        self._reconciliations = Counter(
            "regent_reconciliations",
            "Reconciliations of custom resources by what came of them.",
            ["kind", "result"],
            registry=registry,
        )
        self._reconciled = Histogram(
            "regent_reconciliation_seconds",
            "How long a reconciliation takes, with its requests and commands.",
            ["kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._contested = Counter(
            "regent_contested_writes",
            "Writes to custom resources of what somebody else changes again and again: statuses "
            "and finalizers.",
            ["kind"],
            registry=registry,
        )
        for kind in _KINDS:  # a series that appears with its first error raises no alert
            self._contested.labels(kind)
            self._reconciled.labels(kind)
            for result in RESULTS:
                self._reconciliations.labels(kind, result)
        self._requests = Counter(
            "regent_kubernetes_requests",
            'Requests to the API server, by verb and HTTP status; code "none": no answer.',
            ["verb", "code"],
            registry=registry,
        )
        self._waits = Histogram(
            "regent_kubernetes_request_wait_seconds",
            "How long requests to the API server wait for others to end before they are sent.",
            buckets=_SECONDS,
            registry=registry,
        )
        Info(
            "regent_build",
            "Which Regent this is.",
            registry=registry,
        ).info({"version": version("regent"), "python": python_version()})

    def count_foreign_deletion(self) -> None:
        """A resource has lost its topic."""
        self._foreign_deletions.inc()

    def reconciled(self, kind: str, *, result: str, took_s: float) -> None:
        """A resource was reconciled; ``result`` is one of :data:`RESULTS`."""
        self._reconciliations.labels(kind, result).inc()
        self._reconciled.labels(kind).observe(took_s)

    def contested(self, kind: str) -> None:
        """A resource was written once more that somebody else changes again and again."""
        self._contested.labels(kind).inc()

    def requested(self, verb: str, status: int | None) -> None:
        """The API server has answered a request; None: it has not."""
        self._requests.labels(verb, "none" if status is None else str(status)).inc()

    def waited(self, waited_s: float) -> None:
        """A request to the API server has waited for others to end, and is sent now."""
        self._waits.observe(waited_s)


class ServingState(NamedTuple):
    """What a replica does now.

    Attributes:
        has_session: Whether its session with ZooKeeper can be trusted.
        is_elected: Whether ZooKeeper has elected it.
        is_serving: Whether it serves custom resources: as the elected one, or by the Lease.
        queued: Resources that wait to be reconciled.
        oldest_s: How long the first of them has waited.
        stalled_s: Seconds since a reconciliation, or a step of one, ended while there was something
            to do.
        refused: Resources to which the API server refuses what is written, or stores something
            else.
    """

    has_session: bool = False
    is_elected: bool = False
    is_serving: bool = False
    queued: int = 0
    oldest_s: float = 0.0
    stalled_s: float = 0.0
    refused: int = 0


_GAUGES: Final[Mapping[str, tuple[str, Callable[[ServingState], float]]]] = {
    "regent_zookeeper_session": (
        "1 while there is a session with ZooKeeper that can be trusted, else 0.",
        lambda state: state.has_session,
    ),
    "regent_elected": (
        "1 in the replica that ZooKeeper has elected among the replicas of Regent, else 0.",
        lambda state: state.is_elected,
    ),
    "regent_serving": (
        "1 in the replica that serves custom resources, else 0.",
        lambda state: state.is_serving,
    ),
    "regent_work_queue_depth": (
        "Custom resources that wait to be reconciled.",
        lambda state: state.queued,
    ),
    "regent_work_queue_oldest_seconds": (
        "How long the first of them has waited.",
        lambda state: state.oldest_s,
    ),
    "regent_work_queue_stalled_seconds": (
        "Seconds since a reconciliation, or a step of one, ended while there was something to do.",
        lambda state: state.stalled_s,
    ),
    "regent_resources_refused": (
        "Custom resources to which the API server refuses what Regent writes, or stores something "
        "else: their statuses are out of date.",
        lambda state: state.refused,
    ),
}


class ServingCollector(Collector):
    """Reads the state at the moment of the scrape.

    Args:
        read: Returns it. Called in any thread.
    """

    def __init__(self, read: Callable[[], ServingState]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """Metrics as they are now."""
        state = self._read()
        for name, (text, value) in _GAUGES.items():
            yield GaugeMetricFamily(name, text, value=float(value(state)))
