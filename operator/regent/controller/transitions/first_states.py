"""The first states of partitions, by which they come into being."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regent.controller.effects import Write
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.failed_elections import Failures, NoCandidate
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.partition import INITIAL_LEADER_EPOCH, LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import Create, Written, ZkError
from regent.zk_data.topics import encode_partition_state


class FirstStates(NamedTuple):
    """Result of :func:`create_first_states`.

    Attributes:
        created: The states that were written.
        existing: Partitions whose state znode exists already.
        failures: Partition -> why it has no leader.
    """

    created: dict[TopicPartition, LeaderAndIsr]
    existing: list[TopicPartition]
    failures: Failures


async def create_first_states(
    context: ControllerContext, partitions: Sequence[TopicPartition]
) -> FirstStates:
    """Create state znodes: the first live replica leads, all live replicas are in sync."""
    result = FirstStates({}, [], {})
    first: dict[TopicPartition, LeaderAndIsr] = {}
    for tp in partitions:
        replicas = context.cluster.replicas(tp)
        live = tuple(r for r in replicas if context.is_replica_online(r, tp))
        if live:
            first[tp] = LeaderAndIsr(live[0], INITIAL_LEADER_EPOCH, live, context.term.epoch, 0)
        else:
            result.failures[tp] = NoCandidate(f"none of its replicas {list(replicas)} is live")
    if not first:
        return result
    await _create_parents(context, first)
    results = await Write(
        [
            Create(paths.partition_state(tp), encode_partition_state(state))
            for tp, state in first.items()
        ],
        guard=epoch_guard(context),
    )
    for (tp, state), answer in zip(first.items(), results, strict=True):
        if isinstance(answer, Written):
            result.created[tp] = state
        elif answer is ZkError.NODE_EXISTS:
            result.existing.append(tp)
        else:
            result.failures[tp] = f"ZooKeeper answered {answer.value} for its state znode"
    return result


async def _create_parents(context: ControllerContext, partitions: Iterable[TopicPartition]) -> None:
    guard = epoch_guard(context)
    topics = dict.fromkeys(tp.topic for tp in partitions)
    await Write(
        [Create(paths.topic_partitions(topic), exist_ok=True) for topic in topics], guard=guard
    )
    await Write(
        [Create(paths.topic_partition(tp), exist_ok=True) for tp in partitions], guard=guard
    )
