"""Metrics carry the names of Kafka's controller and the numbers of its context."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from regent.controller.controller_state import ControllerState
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.state.term import Term
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.observability.metrics import (
    ControllerCollector,
    ControllerGauges,
    EventMetrics,
    gauges_of,
)
from regent.observability.standby_metrics import StandbyCollector
from regent.standby.status import StandbyPhase, StandbyStatus
from regent.zk_data.throttles import BrokerThrottle, TopicThrottle


class Statistics:
    """Fixed numbers."""

    gauges = ControllerGauges(active_controller_count=1, offline_partitions_count=3)
    state = ControllerState.TOPIC_CHANGE
    queue_size = 4
    channel_queue_sizes: Mapping[int, int] = {1: 2, 2: 5}
    unreached_broker_count = 1


def scrape(registry: CollectorRegistry) -> dict[str, float]:
    """Sample name with labels -> value."""
    text = generate_latest(registry).decode()
    return {
        sample.name + "".join(f"/{v}" for v in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_gauges_have_the_names_that_dashboards_know() -> None:
    registry = CollectorRegistry()
    registry.register(ControllerCollector(Statistics()))
    samples = scrape(registry)
    assert samples["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert samples["kafka_controller_kafkacontroller_offlinepartitionscount"] == 3
    assert samples["kafka_controller_kafkacontroller_controllerstate"] == 3
    assert samples["kafka_controller_controllereventmanager_eventqueuesize"] == 4
    assert samples["kafka_controller_controllerchannelmanager_queuesize/1"] == 2
    assert samples["kafka_controller_controllerchannelmanager_totalqueuesize"] == 7
    assert samples["kafka_controller_controllerchannelmanager_unreachedbrokerscount"] == 1
    assert samples["kafka_controller_controllerstats_uncleanleaderelections_total"] == 0
    assert samples["kafka_controller_controllerstats_restoredtopicids_total"] == 0


def test_the_standbys_cache_has_metrics_before_it_is_loaded() -> None:
    class Keeper:
        standby: StandbyStatus | None = None
        suspicions: Mapping[str, int] = {"dead": 0}
        unheard_replicas = 0

    registry, keeper = CollectorRegistry(), Keeper()
    registry.register(StandbyCollector(keeper))
    assert set(scrape(registry).values()) == {0}
    keeper.standby = StandbyStatus(
        phase=StandbyPhase.CURRENT, znodes=9, dirty=2, refreshes=3, bytes_read=70, differences=1
    )
    samples = scrape(registry)
    assert samples["regent_standby_current"] == 1
    assert samples["regent_standby_znodes"] == 9
    assert samples["regent_standby_dirty"] == 2
    assert samples["regent_standby_refreshes_total"] == 3
    assert samples["regent_standby_bytes_read_total"] == 70
    assert samples["regent_standby_differences_total"] == 1
    keeper.suspicions = {"dead": 2, "frozen": 1}
    assert scrape(registry)["regent_replica_suspicions_total/dead"] == 2
    keeper.unheard_replicas = 1
    assert scrape(registry)["regent_replicas_unheard"] == 1


def test_event_counters_exist_before_the_first_event() -> None:
    registry = CollectorRegistry()
    EventMetrics(registry)
    samples = scrape(registry)
    assert samples["kafka_controller_controllerstats_topicchangerateandtimems_count"] == 0
    assert samples["kafka_controller_controllereventmanager_eventqueuetimems_count"] == 0


def test_events_are_counted_by_what_they_do() -> None:
    registry = CollectorRegistry()
    metrics = EventMetrics(registry)
    metrics.processed(ControllerState.TOPIC_CHANGE, queued_ms=1.5, took_ms=20)
    metrics.processed(ControllerState.UPDATE_METADATA_RESPONSE, queued_ms=0, took_ms=0)
    samples = scrape(registry)
    assert samples["kafka_controller_controllerstats_topicchangerateandtimems_count"] == 1
    assert samples["kafka_controller_controllerstats_topicchangerateandtimems_sum"] == 20
    assert samples["kafka_controller_controllereventmanager_eventqueuetimems_count"] == 2


def test_numbers_are_those_of_the_context() -> None:
    assert gauges_of(None) == ControllerGauges()
    context = ControllerContext(Term(controller_id=9, epoch=1, epoch_zk_version=1))
    for topic in ("kept", "marked"):
        context.cluster.add_topic(topic, None)
        tp = TopicPartition(topic, 0)
        context.set_assignment(tp, ReplicaAssignment((1, 2)))
        context.set_partition_state(tp, PartitionState.NEW)
    context.set_partition_state(TopicPartition("kept", 0), PartitionState.OFFLINE)
    context.cluster.set_leadership(
        {TopicPartition(topic, 0): LeaderAndIsr(2, 0, (2,), 1, 0) for topic in ("kept", "marked")}
    )
    context.set_assignment(TopicPartition("kept", 1), ReplicaAssignment((1, 2), (2,), ()))
    context.queue_topic_for_deletion("marked")
    context.set_replica_state(1, TopicPartition("marked", 0), ReplicaState.DELETION_SUCCESSFUL)
    context.set_replica_state(2, TopicPartition("marked", 0), ReplicaState.DELETION_INELIGIBLE)
    context.refusals.update(1, refused={TopicPartition("kept", 0): "X"}, done=())
    context.throttles.set_topic("kept", TopicThrottle())
    for broker_id in (1, 2):
        context.throttles.set_broker(broker_id, BrokerThrottle(leader_rate=5))
    context.mark_shutting_down(1)
    assert gauges_of(context).preferred_replica_imbalance_count is None
    assert not context.balance.count_some(10)
    gauges = gauges_of(context)
    assert gauges.shutting_down_broker_count == 1
    assert gauges.active_controller_count == 1
    assert gauges.refused_replicas_count == 1
    assert gauges.offline_partitions_count == 1
    assert gauges.new_partitions_count == 1
    assert gauges.preferred_replica_imbalance_count == 1
    assert (gauges.global_topic_count, gauges.global_partition_count) == (2, 3)
    assert gauges.reassigning_partitions_count == 1
    assert gauges.throttles_count == 3
    assert gauges.topics_to_delete_count == 1
    assert gauges.replicas_to_delete_count == 1
    assert gauges.replicas_ineligible_to_delete_count == 1
