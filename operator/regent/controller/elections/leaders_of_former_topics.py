"""A leader that has a replica of another topic of that name: somebody else in the ISR leads.

It refuses LeaderAndIsr with INCONSISTENT_TOPIC_ID, and no repetition heals that. Upstream logs the
error, and the partition has no leader that serves while others in its ISR are alive. Here such a
replica counts as one on a failed log directory does: it leaves the ISR, and another member leads.
That loses nothing: what has been committed is in every log of the ISR, and this one has nothing of
the topic.

If the id is wrong (see ``topic_ids.py``), all brokers refuse it and go on to lead under the former
leader epoch. A change of the leader would take the partition away from its clients. So another
member has to say first that it hosts the topic: it is sent its leadership again, and a broker
compares ids before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.reassignment.new_epochs import raise_epochs
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState
from regent.controller.topics.stray_replicas import take_isr_changes
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.log import examples
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse
from regent.protocol.error_codes import (
    INCONSISTENT_TOPIC_ID,
    NONE,
    STALE_CONTROLLER_EPOCH,
    error_name,
)

_OF_ANOTHER_TOPIC: Final = error_name(INCONSISTENT_TOPIC_ID)

_HOSTS_THE_TOPIC: Final = (NONE, STALE_CONTROLLER_EPOCH)
"""What a broker answers about a partition whose id is that of its log. STALE_CONTROLLER_EPOCH: the
leader epoch is not new to it."""


async def take_leader_and_isr_answer(
    active: ActiveController, response: LeaderAndIsrResponse
) -> None:
    """Ask the others where a leader refuses, elect where one of them hosts the topic.

    To be called when the refusals of the answer are in the context.
    """
    context, broker_id = active.context, response.broker_id
    if response.error_code or not context.refusals.count:
        return
    errors, leadership = response.partition_errors, context.cluster.leadership
    affected = [tp for tp in response.partitions if _is_to_be_handed_over(context, tp)]
    own = [tp for tp in affected if leadership[tp].leader == broker_id]
    await _ask_others(active, broker_id, own)
    hosted = [tp for tp in affected if errors.get(tp, NONE) in _HOSTS_THE_TOPIC]
    await _elect(active, [tp for tp in hosted if _can_lead(context, broker_id, tp)])


async def repeat(active: ActiveController) -> None:
    """Ask again about partitions that still have such a leader: what their election failed for, a
    right or a quota in ZooKeeper, may be over, and nobody would answer anew."""
    context = active.context
    for leader in list(context.cluster.brokers):
        led = [tp for tp in context.refusals.on_broker(leader) if _leads(context, leader, tp)]
        await _ask_others(active, leader, [tp for tp in led if _is_to_be_handed_over(context, tp)])


def _leads(context: ControllerContext, broker_id: int, tp: TopicPartition) -> bool:
    state = context.cluster.leadership.get(tp)
    return state is not None and state.leader == broker_id


def _is_to_be_handed_over(context: ControllerContext, tp: TopicPartition) -> bool:
    """Whether the leader of a partition has a replica of another topic, and is to keep that."""
    state = context.cluster.leadership.get(tp)
    return (
        state is not None
        and context.refusals.on_broker(state.leader).get(tp) == _OF_ANOTHER_TOPIC
        and tp not in context.stray_replicas.get(state.leader, {}).get(tp.topic, ())
        and context.partition_state(tp) is PartitionState.ONLINE
        and not context.is_topic_queued_for_deletion(tp.topic)
    )


def _can_lead(context: ControllerContext, broker_id: int, tp: TopicPartition) -> bool:
    return broker_id in context.cluster.leadership[tp].isr and context.is_replica_online(
        broker_id, tp
    )


async def _ask_others(
    active: ActiveController, leader: int, partitions: Sequence[TopicPartition]
) -> None:
    """Send the other members of the ISRs the same leadership again: their answers say what they
    host. Those that have refused it have said so already."""
    context = active.context
    asked: dict[int, dict[TopicPartition, bool]] = {}
    for tp in partitions:
        for member in context.cluster.leadership[tp].isr:
            if (
                member != leader
                and context.is_replica_online(member, tp)
                and tp not in context.refusals.on_broker(member)
            ):
                asked.setdefault(member, {})[tp] = False
    batch = ControllerBrokerRequestBatch(context)
    for member, repeated in asked.items():
        batch.repeat_leader_and_isr(member, repeated)
    await batch.send()


async def _elect(active: ActiveController, partitions: Sequence[TopicPartition]) -> None:
    """Replicas of another topic leave the ISR, and one of the others leads."""
    if not partitions:
        return
    context = active.context
    losing = {
        tp: tuple(b for b, error in context.refusals.of_partition(tp) if error == _OF_ANOTHER_TOPIC)
        for tp in partitions
    }
    lost = dict.fromkeys(b for brokers in losing.values() for b in brokers)
    lives = [context.cluster.brokers[b] for b in lost if b in context.cluster.brokers]
    with context.trail.because(CauseKind.LEADER_OF_FORMER_TOPIC, brokers=lives):
        failures = await raise_epochs(active, losing)
    done = [tp for tp in partitions if tp not in failures]
    if done:
        active.log.error(
            "Leaders replaced that host another topic of that name",
            brokers=list(lost),
            partitions=len(done),
            examples=examples(done),
        )
    if failures:
        active.log.error(
            "Leaders not replaced that host another topic of that name",
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )
    await take_isr_changes(active, done)
    await PublishView(frozenset(tp.topic for tp in partitions))
