"""Prometheus metrics under the names that Kafka's controller has by way of the JMX exporter.

Dashboards and alerts made for it go on working.

Values that exist anyway are read when somebody asks (a custom collector); only what happens in
between, event times and rates, is counted as it happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from regent.controller.controller_state import TIMERS, ControllerState
from regent.controller.state.context import ControllerContext

PREFIX = "kafka_controller_"

_MILLISECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)


class ControllerGauges(msgspec.Struct, frozen=True):
    """The controller's numbers after an event. All 0 in a process that is not the controller; None
    stands for what is not counted yet."""

    active_controller_count: int = 0
    offline_partitions_count: int = 0
    new_partitions_count: int = 0
    preferred_replica_imbalance_count: int | None = 0
    global_topic_count: int = 0
    global_partition_count: int = 0
    active_broker_count: int = 0
    shutting_down_broker_count: int = 0
    topics_to_delete_count: int = 0
    topics_ineligible_to_delete_count: int = 0
    replicas_to_delete_count: int = 0
    replicas_ineligible_to_delete_count: int = 0
    unclean_leader_elections: int = 0
    restored_topic_ids: int = 0
    refused_replicas_count: int = 0
    unreadable_topics_count: int = 0
    reassigning_partitions_count: int = 0
    unassigned_replicas_count: int = 0
    throttles_count: int = 0


def gauges_of(context: ControllerContext | None) -> ControllerGauges:
    """Take the numbers. To be called where the context is owned, after every event: the context
    keeps them."""
    if context is None:
        return ControllerGauges()
    return ControllerGauges(
        active_controller_count=1,
        offline_partitions_count=context.offline_partition_count,
        new_partitions_count=context.new_partition_count,
        preferred_replica_imbalance_count=context.balance.known_imbalance_count,
        global_topic_count=len(context.cluster.topics),
        global_partition_count=context.cluster.partition_count,
        active_broker_count=context.live_broker_count,
        shutting_down_broker_count=len(context.shutting_down_broker_ids),
        topics_to_delete_count=len(context.topics_to_be_deleted),
        topics_ineligible_to_delete_count=len(context.topics_ineligible_for_deletion),
        replicas_to_delete_count=context.replicas_to_delete_count,
        replicas_ineligible_to_delete_count=context.replicas_ineligible_to_delete_count,
        unclean_leader_elections=context.unclean_leader_elections,
        restored_topic_ids=context.restored_topic_ids,
        refused_replicas_count=context.refusals.count,
        unreadable_topics_count=len(context.cluster.unreadable_topics),
        unassigned_replicas_count=context.unassigned_replicas.count,
        throttles_count=context.throttles.count,
        reassigning_partitions_count=len(context.cluster.partitions_being_reassigned),
    )


_GAUGES = {
    "active_controller_count": "ActiveControllerCount: 1 in the controller, else 0.",
    "offline_partitions_count": "OfflinePartitionsCount: partitions without a leader.",
    "new_partitions_count": "Partitions that never had a leader: none of their replicas was live.",
    "preferred_replica_imbalance_count": "PreferredReplicaImbalanceCount: partitions whose leader "
    "is not their preferred replica.",
    "global_topic_count": "GlobalTopicCount: topics of the cluster.",
    "global_partition_count": "GlobalPartitionCount: partitions of the cluster.",
    "active_broker_count": "ActiveBrokerCount: live brokers that are not shutting down.",
    "shutting_down_broker_count": "Brokers that asked to be shut down and are still registered.",
    "topics_to_delete_count": "TopicsToDeleteCount: topics whose deletion is not finished.",
    "topics_ineligible_to_delete_count": "TopicsIneligibleToDeleteCount: of those, topics that "
    "wait for a broker or a move.",
    "replicas_to_delete_count": "ReplicasToDeleteCount: replicas whose deletion is not finished.",
    "replicas_ineligible_to_delete_count": "ReplicasIneligibleToDeleteCount: of those, replicas "
    "that cannot be deleted now.",
    "reassigning_partitions_count": "Partitions that are being reassigned.",
    "unassigned_replicas_count": "Replicas that brokers have in their log directories, and that "
    "are not assigned to them.",
    "throttles_count": "Topics and brokers that Regent throttles while it moves partitions.",
    "unreadable_topics_count": "Topics whose nodes, or some partitions of them, cannot be read.",
    "refused_replicas_count": "Replicas that their brokers refuse to lead, follow or delete.",
}


class ControllerStatistics(Protocol):
    """What the collector reads. Every property may be read from any thread."""

    @property
    def gauges(self) -> ControllerGauges: ...

    @property
    def state(self) -> ControllerState: ...

    @property
    def queue_size(self) -> int: ...

    @property
    def channel_queue_sizes(self) -> Mapping[int, int]:
        """Requests that wait, by broker."""
        ...

    @property
    def unreached_broker_count(self) -> int: ...


class EventMetrics:
    """Rates and times of the controller's events."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queued = Histogram(
            f"{PREFIX}controllereventmanager_eventqueuetimems",
            "EventQueueTimeMs: how long events wait in the controller's queue, in milliseconds.",
            buckets=_MILLISECONDS,
            registry=registry,
        )
        self._took = {
            state: Histogram(
                f"{PREFIX}controllerstats_{timer.lower()}",
                f"{timer}: events of this kind and how long they take, in milliseconds.",
                buckets=_MILLISECONDS,
                registry=registry,
            )
            for state, timer in TIMERS.items()
        }

    def processed(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None:
        """Count one processed event."""
        self._queued.observe(queued_ms)
        timer = self._took.get(state)
        if timer is not None:
            timer.observe(took_ms)


class ControllerCollector(Collector):
    """Reads the controller's gauges at the moment of the scrape."""

    def __init__(self, statistics: ControllerStatistics) -> None:
        self._statistics = statistics

    def collect(self) -> Iterable[Metric]:
        """Metrics as they are now."""
        statistics = self._statistics
        gauges = statistics.gauges
        for field, help_text in _GAUGES.items():
            value: int | None = getattr(gauges, field)
            yield GaugeMetricFamily(
                f"{PREFIX}kafkacontroller_{field.replace('_', '')}",
                help_text,
                value=value,  # None: the metric has no sample
            )
        yield GaugeMetricFamily(
            f"{PREFIX}kafkacontroller_fencedbrokercount",
            "FencedBrokerCount: always 0 with ZooKeeper.",
            value=0,
        )
        yield GaugeMetricFamily(
            f"{PREFIX}kafkacontroller_controllerstate",
            "ControllerState: number of what the controller is doing.",
            value=statistics.state,
        )
        yield GaugeMetricFamily(
            f"{PREFIX}controllereventmanager_eventqueuesize",
            "EventQueueSize: events that wait in the controller's queue.",
            value=statistics.queue_size,
        )
        yield CounterMetricFamily(
            f"{PREFIX}controllerstats_uncleanleaderelections",
            "UncleanLeaderElectionsPerSec, as a counter: leaders from outside the ISR since this "
            "process became the controller.",
            value=gauges.unclean_leader_elections,
        )
        yield CounterMetricFamily(
            f"{PREFIX}controllerstats_restoredtopicids",
            "Topic ids written back, because somebody had dropped or replaced them, since this "
            "process became the controller.",
            value=gauges.restored_topic_ids,
        )
        yield GaugeMetricFamily(
            f"{PREFIX}controllerchannelmanager_unreachedbrokerscount",
            "Live brokers that the controller does not reach, and cannot inform of anything.",
            value=statistics.unreached_broker_count,
        )
        yield from _channel_metrics(statistics.channel_queue_sizes)


def _channel_metrics(sizes: Mapping[int, int]) -> Iterable[Metric]:
    yield GaugeMetricFamily(
        f"{PREFIX}controllerchannelmanager_totalqueuesize",
        "TotalQueueSize: the sum of QueueSize over all brokers.",
        value=sum(sizes.values()),
    )
    per_broker = GaugeMetricFamily(
        f"{PREFIX}controllerchannelmanager_queuesize",
        "QueueSize: partitions that this broker still has to be informed of, once for each kind of"
        " request; a list of brokers and the request in flight count one each.",
        labels=["broker_id"],
    )
    for broker_id, size in sizes.items():
        per_broker.add_metric([str(broker_id)], size)
    yield per_broker
