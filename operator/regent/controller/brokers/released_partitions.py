"""What follows the answer to brokers that shut down: the view, and a warning.

A broker that stops waits for its answer, and so do the brokers that take its place. Neither needs
this, and it reads the configuration of each topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.partition_release import with_successors
from regent.controller.configs.min_insync_replicas import min_insync_replicas
from regent.controller.effects import ArmTimer, PublishView
from regent.controller.events import PartitionsReleased
from regent.controller.state.context import ControllerContext
from regent.model.log import examples
from regent.model.partition import TopicPartition

AFTER_MS: Final = 1_000
"""Until brokers have been sent what they wait for, which takes the processor."""


async def expect_partitions_released(active: ActiveController, broker_ids: Iterable[int]) -> None:
    """Brokers are about to be answered: do the rest afterwards."""
    for broker_id in broker_ids:
        event = PartitionsReleased(active.context.term.epoch, broker_id)
        await ArmTimer(f"partitions released by broker {broker_id}", AFTER_MS, event)


async def process_partitions_released(active: ActiveController, event: PartitionsReleased) -> None:
    """Publish what a broker has left, and warn of producers with acks=all that are refused now."""
    context = active.context
    if event.controller_epoch != context.term.epoch:
        return
    await PublishView(frozenset())
    left = _left(context, event.broker_id)
    if not left:
        return
    minimum = await min_insync_replicas(list(dict.fromkeys(tp.topic for tp in left)), active.log)
    leadership = context.cluster.leadership
    below = [tp for tp in left if len(leadership[tp].isr) < minimum[tp.topic]]
    if below:
        active.log.warning(
            "ISRs without a shutting down broker are below min.insync.replicas",
            broker=event.broker_id,
            partitions=len(below),
            examples=examples(below),
        )


def _left(context: ControllerContext, broker_id: int) -> list[TopicPartition]:
    """Partitions that others lead on without a broker."""
    leadership = context.cluster.leadership
    return [
        tp
        for tp in with_successors(context, context.replica_states_on(broker_id))
        if broker_id not in leadership[tp].isr
    ]
