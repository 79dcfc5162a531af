"""What a client knows of a topic: ZooKeeper says it, no state machine does."""

from __future__ import annotations

from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState
from regent.model.partition import TopicPartition


def partition_state(context: ControllerContext, tp: TopicPartition) -> PartitionState:
    """The state that a partition has in the controller, once that has seen what ZooKeeper has."""
    leadership = context.cluster.leadership.get(tp)
    if leadership is None:
        return PartitionState.NEW
    is_led = leadership.leader in context.cluster.brokers
    return PartitionState.ONLINE if is_led else PartitionState.OFFLINE


def deletion_waits_for(context: ControllerContext, topic: str) -> tuple[int, ...]:
    """Brokers that keep a topic from being deleted, as far as ZooKeeper shows them: Kafka's
    controller waits for those that are down. Which of the others have confirmed only it knows."""
    if not context.is_topic_queued_for_deletion(topic):
        return ()
    live = context.cluster.brokers
    hosts = {r for a in context.cluster.partitions_of(topic).values() for r in a.replicas}
    return tuple(sorted(broker_id for broker_id in hosts if broker_id not in live))
