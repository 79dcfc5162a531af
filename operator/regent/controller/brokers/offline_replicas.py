"""Replicas are gone, with their broker or with a log directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from regent.controller.active_controller import ActiveController
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.transitions import election
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election import ElectionStrategy
from regent.model.partition import TopicPartition


async def on_replicas_become_offline(
    active: ActiveController,
    replicas: Mapping[int, Sequence[TopicPartition]],
    strategy: ElectionStrategy = election.OFFLINE,
) -> None:
    """Replicas are gone: with their broker or with a log directory.

    Leaderless partitions come first: ``handle_state_changes`` to Offline, then elections, then the
    ISRs that the dead were merely members of.

    Args:
        strategy: How to elect.
    """
    context = active.context
    leaderless: list[TopicPartition] = []
    being_deleted: dict[int, list[TopicPartition]] = {}
    others: dict[int, list[TopicPartition]] = {}
    for broker_id, partitions in replicas.items():
        for tp in partitions:
            queued = context.is_topic_queued_for_deletion(tp.topic)
            (being_deleted if queued else others).setdefault(broker_id, []).append(tp)
            state = context.cluster.leadership.get(tp)
            if not queued and state is not None and state.leader == broker_id:
                leaderless.append(tp)
    await active.partitions.handle_state_changes(leaderless, PartitionState.OFFLINE)
    await active.partitions.trigger_online_for(leaderless, strategy)
    await active.replicas.handle_state_changes(others, ReplicaState.OFFLINE)
    # A leader that has yet to learn that its session is gone may have taken a replica in meanwhile.
    await active.partitions.trigger_online_for(
        (tp for tp in leaderless if _can_be_led(context, tp)), strategy
    )
    if being_deleted:
        await active.deletions.fail_replicas(
            {
                broker_id: [
                    tp
                    for tp in partitions
                    if context.replica_state(broker_id, tp) is ReplicaState.DELETION_STARTED
                ]
                for broker_id, partitions in being_deleted.items()
            }
        )
    if not leaderless:
        batch = ControllerBrokerRequestBatch(context)
        batch.add_update_metadata()
        await batch.send()


def _can_be_led(context: ControllerContext, tp: TopicPartition) -> bool:
    state = context.cluster.leadership.get(tp)
    return state is not None and any(context.is_replica_online(r, tp) for r in state.isr)


def without_started_deletions(
    active: ActiveController, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Leave out replicas whose deletion has begun: Online is not a legal state for them."""
    context = active.context
    return [tp for tp in partitions if tp.topic not in context.topics_with_deletion_started]
