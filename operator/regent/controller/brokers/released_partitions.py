"""What follows the answer to brokers that shut down: the view, and a warning.

A broker that stops waits for its answer, and so do the brokers that take its place. Neither needs
this, and it reads the configuration of each topic.
"""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.partition_release import has_successors
from regent.controller.configs.min_insync_replicas import min_insync_replicas
from regent.controller.effects import PublishView
from regent.controller.events import PartitionsReleased
from regent.controller.log import examples
from regent.controller.state.context import ControllerContext
from regent.model.partition import TopicPartition


async def process_partitions_released(active: ActiveController, event: PartitionsReleased) -> None:
    """Publish what brokers have left, and warn of producers with acks=all that are refused now."""
    if event.controller_epoch != active.context.term.epoch:
        return
    await PublishView(frozenset())
    left = {broker_id: _left(active.context, broker_id) for broker_id in event.broker_ids}
    topics = list(dict.fromkeys(tp.topic for partitions in left.values() for tp in partitions))
    if not topics:
        return
    minimum = await min_insync_replicas(topics, active.log)
    leadership = active.context.cluster.leadership
    for broker_id, partitions in left.items():
        below = [tp for tp in partitions if len(leadership[tp].isr) < minimum[tp.topic]]
        if below:
            active.log.warning(
                "ISRs without a shutting down broker are below min.insync.replicas",
                broker=broker_id,
                partitions=len(below),
                examples=examples(below),
            )


def _left(context: ControllerContext, broker_id: int) -> list[TopicPartition]:
    """Partitions that others lead on without a broker."""
    leadership = context.cluster.leadership
    return [
        tp
        for tp in context.replica_states_on(broker_id)
        if has_successors(context, tp) and broker_id not in leadership[tp].isr
    ]
