"""Takes what brokers refuse out of their answers: kept in the context, logged, published."""

from __future__ import annotations

from collections import Counter
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.state.refusals import SAMPLE_SIZE
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse, StopReplicaResponse
from regent.protocol.error_codes import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    STALE_CONTROLLER_EPOCH,
    error_name,
)


async def take_answer(
    active: ActiveController, response: LeaderAndIsrResponse | StopReplicaResponse
) -> None:
    """Keep what a broker refuses, forget what it has done by now; log and publish what changed."""
    context, broker_id = active.context, response.broker_id
    refused = {
        tp: error
        for tp, error in _refused(response).items()
        if broker_id in context.cluster.replicas(tp)
    }
    done = (tp for tp in response.partitions if tp not in refused)
    changed = context.refusals.update(broker_id, refused=refused, done=done)
    if not changed:
        return
    fresh = [tp for tp, error in changed.items() if error is not None]
    if fresh:
        active.log.error(
            "Replicas refused by their broker",
            broker=broker_id,
            request=_REQUEST_NAMES[type(response)],
            errors=dict(Counter(refused[tp] for tp in fresh)),
            count=len(fresh),
            replicas=[str(tp) for tp in fresh[:SAMPLE_SIZE]],
        )
    if len(fresh) < len(changed):
        active.log.info(
            "Replicas no longer refused", broker=broker_id, count=len(changed) - len(fresh)
        )
    await PublishView(frozenset(tp.topic for tp in changed))


_REQUEST_NAMES: Final = {
    LeaderAndIsrResponse: "LeaderAndIsr",
    StopReplicaResponse: "StopReplica",
}


def _refused(response: LeaderAndIsrResponse | StopReplicaResponse) -> dict[TopicPartition, str]:
    """An error of the whole answer concerns all partitions of the request."""
    if response.error_code:
        return dict.fromkeys(response.partitions, error_name(response.error_code))
    return {
        tp: error_name(code)
        for tp, code in response.partition_errors.items()
        if not _is_normal(response, tp, code)
    }


def _is_normal(
    response: LeaderAndIsrResponse | StopReplicaResponse, tp: TopicPartition, code: int
) -> bool:
    if isinstance(response, LeaderAndIsrResponse):
        return code in (STALE_CONTROLLER_EPOCH, KAFKA_STORAGE_ERROR)
    asked = response.partitions.get(tp)
    deletes = asked is not None and asked.delete
    return not deletes and code in (FENCED_LEADER_EPOCH, KAFKA_STORAGE_ERROR)
