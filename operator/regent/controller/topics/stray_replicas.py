"""Replicas that a broker is to delete, and has not confirmed yet.

Kafka's controller deletes a topic only when every broker with a replica of it is up: one dead
broker blocks it for as long as it is away. Here such replicas are noted in ZooKeeper, the topic
goes, and the broker deletes what is left of it when it is back, before it is sent any leadership.

Somebody may have created a topic of the same name meanwhile. What the broker has of that one must
stay, so a replica is deleted only where that loses nothing:

- when a broker starts, unless it is in the ISR of the partition: a broker that is not in the ISR
  holds no record that the others lack, and it hosts nothing until it is sent a LeaderAndIsr;
- at a failover, for a broker that is up already, unless it hosts the partition: another controller
  may have sent it there. Then its answer to the LeaderAndIsr decides: with INCONSISTENT_TOPIC_ID
  it says that its replica is of the former topic (inter.broker.protocol.version 2.8 and newer),
  which is deleted unless the broker is in the ISR.

A note goes when the broker has confirmed the deletion, or when it became void. While a broker is
the controller nothing happens with it. KAFKA-10548 describes the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ReadChildren
from regent.controller.log import examples
from regent.controller.state.context import ControllerContext
from regent.controller.topics.stray_replica_notes import Note, forget, read
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse, StopReplicaResponse
from regent.protocol.error_codes import INCONSISTENT_TOPIC_ID
from regent.zk_data.stray_replicas import (
    STRAY_REPLICAS,
)


async def delete_on_started(active: ActiveController, broker_ids: Sequence[int]) -> None:
    """Have brokers that have just started delete what was left on them.

    To be called before they are sent a LeaderAndIsr.
    """
    leadership = active.context.cluster.leadership

    def is_stray(broker_id: int, tp: TopicPartition) -> bool:
        state = leadership.get(tp)
        return state is None or broker_id not in state.isr

    await _delete(active, await read(broker_ids, active.log), is_stray)


async def delete_after_failover(active: ActiveController) -> None:
    """Have all live brokers delete what was left on them, and has no successor there."""
    context = active.context
    (children,) = await ReadChildren([STRAY_REPLICAS])
    live = [b for b in context.cluster.brokers if str(b) in (children or ())]
    if not live:
        return
    replicas = context.cluster.replicas
    notes = await read(live, active.log)
    await _delete(
        active,
        notes,
        lambda broker_id, tp: broker_id not in replicas(tp),
        is_doubtful=lambda broker_id, tp: broker_id in replicas(tp),
    )


async def take_answer(active: ActiveController, response: StopReplicaResponse) -> None:
    """Drop the notes about replicas that a broker has deleted by now."""
    context, broker_id = active.context, response.broker_id
    asked = context.stray_replicas.get(broker_id)
    if not asked or response.error_code:
        return
    confirmed: list[str] = []
    for tp, wanted in response.partitions.items():
        remaining = asked.get(tp.topic)
        if remaining is None or not wanted.delete or tp in response.partition_errors:
            continue
        remaining.pop(tp, None)
        if not remaining:
            del asked[tp.topic]
            if not _is_doubtful(context, broker_id, tp.topic):
                confirmed.append(tp.topic)
    if confirmed:
        active.log.info(
            "Stray replicas deleted",
            broker=broker_id,
            topics=len(confirmed),
            examples=examples(confirmed),
        )
        await forget(context, [(broker_id, topic) for topic in confirmed])


async def take_leader_and_isr_answer(
    active: ActiveController, response: LeaderAndIsrResponse
) -> None:
    """What a broker hosts is of the former topic if it says so, else of the present one."""
    context, broker_id = active.context, response.broker_id
    doubtful = context.doubtful_replicas.get(broker_id)
    if not doubtful or response.error_code:
        return
    answered = [tp for tp in doubtful if tp in response.partitions]
    errors, leadership = response.partition_errors, context.cluster.leadership
    strays = [
        tp
        for tp in answered
        if errors.get(tp) == INCONSISTENT_TOPIC_ID and broker_id not in leadership[tp].isr
    ]
    settled = [tp for tp in answered if tp in strays or tp not in errors]
    for tp in settled:
        del doubtful[tp]
    if strays:
        active.log.warning(
            "Replicas of a former topic found", broker=broker_id, examples=examples(strays)
        )
        await _delete_and_create(active, broker_id, strays)
    asked = context.stray_replicas.get(broker_id, {})
    done = [
        topic
        for topic in dict.fromkeys(tp.topic for tp in settled)
        if topic not in asked and not _is_doubtful(context, broker_id, topic)
    ]
    if done:
        await forget(context, [(broker_id, topic) for topic in done])


async def _delete_and_create(
    active: ActiveController, broker_id: int, partitions: Sequence[TopicPartition]
) -> None:
    """Delete replicas of a former topic, and create those of the present one in their place."""
    asked = active.context.stray_replicas.setdefault(broker_id, {})
    for tp in partitions:
        asked.setdefault(tp.topic, {})[tp] = None
    batch = ControllerBrokerRequestBatch(active.context)
    batch.add_stray_deletion(broker_id, partitions)
    await batch.send()
    batch.add_leader_and_isr((broker_id,), partitions, is_new=True)
    await batch.send()


def _is_doubtful(context: ControllerContext, broker_id: int, topic: str) -> bool:
    return any(tp.topic == topic for tp in context.doubtful_replicas.get(broker_id, ()))


async def _delete(
    active: ActiveController,
    notes: Mapping[Note, Iterable[TopicPartition]],
    is_stray: Callable[[int, TopicPartition], bool],
    *,
    is_doubtful: Callable[[int, TopicPartition], bool] = lambda _broker, _tp: False,
) -> None:
    """Ask brokers to delete their stray replicas; forget the notes that have become void.

    A topic of the same name that is being deleted gets rid of its own replicas, and the broker's
    confirmation of that counts here, too.
    """
    context = active.context
    replicas = context.cluster.replicas
    batch = ControllerBrokerRequestBatch(context)
    void: list[Note] = []
    for (broker_id, topic), partitions in notes.items():
        goes = context.is_topic_queued_for_deletion(topic)
        strays = dict.fromkeys(tp for tp in partitions if goes or is_stray(broker_id, tp))
        if strays:
            asked = context.stray_replicas.setdefault(broker_id, {}).setdefault(topic, {})
            fresh = [tp for tp in strays if tp not in asked]  # the others: in this very term
            asked.update(strays)
            stopped = [tp for tp in fresh if not goes or broker_id not in replicas(tp)]
            batch.add_stray_deletion(broker_id, stopped)
        doubtful = [tp for tp in partitions if tp not in strays and is_doubtful(broker_id, tp)]
        if doubtful:
            known = context.doubtful_replicas.setdefault(broker_id, {})
            known.update(dict.fromkeys(doubtful))
        elif not strays:
            void.append((broker_id, topic))
    await batch.send()
    if void:
        active.log.warning(
            "Stray replicas left alone: their broker hosts a topic of that name again",
            examples=examples(f"{topic} on broker {broker_id}" for broker_id, topic in void),
            count=len(void),
        )
        await forget(context, void)
