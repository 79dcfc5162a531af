"""New leader epochs, by which leaders learn of the replicas that they have from now on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.reassignment.algebra import origin_of
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.leadership_changes import (
    Decision,
    LeaderAndMembers,
    change_leadership,
)
from regent.model.log import examples
from regent.model.partition import NO_EPOCH, NO_LEADER, LeaderAndIsr, TopicPartition

_NOWHERE: Final[Mapping[int, Collection[TopicPartition]]] = MappingProxyType({})
_NO_EPOCHS: Final[Mapping[TopicPartition, int]] = MappingProxyType({})


class Unsafe(str):
    """Reason of a refusal: committed records could be lost, or the partition its leader."""

    __slots__ = ()


async def announce(
    active: ActiveController,
    partitions: Collection[TopicPartition],
    *,
    new_on: Mapping[int, Collection[TopicPartition]] = _NOWHERE,
) -> None:
    """Raise leader epochs, so that replicas take the leadership and the assignments of the context
    over. Partitions that never had a leader have nobody to tell.

    Args:
        new_on: Brokers with the partitions whose replicas there are still new.
    """
    failures = await raise_epochs(active, dict.fromkeys(partitions, ()), new_on=new_on)
    if failures:
        active.log.error(
            "New leader epochs not written",
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )


async def raise_epochs(
    active: ActiveController,
    losing: Mapping[TopicPartition, tuple[int, ...]],
    *,
    new_on: Mapping[int, Collection[TopicPartition]] = _NOWHERE,
    above: Mapping[TopicPartition, int] = _NO_EPOCHS,
) -> dict[TopicPartition, str]:
    """Raise leader epochs; replicas that are lost leave the ISR, one of the others leads.

    Args:
        losing: Partitions, each with the replicas that the context's assignment does not have any
            more.
        new_on: Brokers with the partitions whose replicas there are still new.
        above: Leader epochs that leaders know already, where they may be higher than the stored
            one: the new one is higher still.

    Returns:
        Partitions where that did not take place, with reasons. Nothing of them has changed.
    """
    context = active.context
    led = [tp for tp in losing if context.partition_state(tp) is not PartitionState.NEW]
    if not led:
        return {}

    def decide(tp: TopicPartition, state: LeaderAndIsr) -> Decision:
        if not losing[tp]:
            return LeaderAndMembers(state.leader, state.isr, above=above.get(tp, NO_EPOCH))
        return leadership_without(context, tp, state, losing[tp])

    written, failures = await change_leadership(context, led, decide, active.log)
    batch = ControllerBrokerRequestBatch(context)
    for tp, state in written.items():
        _add_to_batch(context, tp, state, batch)
        if losing[tp]:
            is_led = context.is_replica_online(state.leader, tp, include_shutting_down=True)
            context.set_partition_state(
                tp, PartitionState.ONLINE if is_led else PartitionState.OFFLINE
            )
    for broker_id, partitions in new_on.items():
        batch.add_leader_and_isr(
            (broker_id,), [tp for tp in partitions if tp in written], is_new=True
        )
    await batch.send()
    return failures


def _add_to_batch(
    context: ControllerContext,
    tp: TopicPartition,
    state: LeaderAndIsr,
    batch: ControllerBrokerRequestBatch,
) -> None:
    """Inform the replicas. Of those that are being added, the ones that exist already: a broker
    with a failed log directory may create them anew, as long as they are not in sync (KAFKA-10314).
    """
    assignment = context.cluster.assignment(tp)
    if assignment is None:
        return
    batch.add_leader_and_isr(origin_of(assignment), (tp,), is_new=False)
    for broker_id in assignment.adding_replicas:
        if context.replica_state(broker_id, tp) is not ReplicaState.NON_EXISTENT:
            batch.add_leader_and_isr((broker_id,), (tp,), is_new=broker_id not in state.isr)


def leadership_without(
    context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr, lost: tuple[int, ...]
) -> Decision:
    """Leader and ISR of a partition without some of its replicas."""
    isr = tuple(replica for replica in state.isr if replica not in lost)
    if not isr:
        return Unsafe(
            f"none of the replicas that would stay is in sync, only {list(state.isr)}: committed "
            "records would be lost"
        )
    if state.leader not in lost:
        return LeaderAndMembers(state.leader, isr)
    online = context.is_replica_online
    remaining = [
        r
        for r in context.cluster.replicas(tp)
        if r in isr and online(r, tp, include_shutting_down=True)
    ]
    leader = next(chain((r for r in remaining if online(r, tp)), remaining, (NO_LEADER,)))
    if leader == NO_LEADER and online(state.leader, tp, include_shutting_down=True):
        return Unsafe(
            f"replica {state.leader} leads, and none of {list(isr)}, which are in sync and would "
            "stay, is live"
        )
    return LeaderAndMembers(leader, isr)
