"""The first states of partitions, by which they come into being."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from regent.controller.state.context import ControllerContext
from regent.controller.transitions.failed_elections import Failures, NoCandidate
from regent.controller.transitions.missing_states import create_parents
from regent.controller.transitions.partition_epochs import exceed_former_epochs
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.log import StructuredLog, examples
from regent.model.partition import INITIAL_LEADER_EPOCH, LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.decoding import EPOCH_MAX
from regent.zk_data.effects import Write
from regent.zk_data.operations import Create, Written, ZkError
from regent.zk_data.topics import encode_partition_state


class FirstStates(NamedTuple):
    """Result of :func:`create_first_states`.

    Attributes:
        created: The states that were written.
        live: Replicas that are live, of all partitions that have any: who is to be informed.
        existing: Partitions whose state znode exists already.
        failures: Partition -> why it has no leader.
    """

    created: dict[TopicPartition, LeaderAndIsr]
    live: dict[TopicPartition, tuple[int, ...]]
    existing: list[TopicPartition]
    failures: Failures


async def create_first_states(
    context: ControllerContext, partitions: Sequence[TopicPartition], log: StructuredLog
) -> FirstStates:
    """Create state znodes: the first live replica leads, all live replicas are in sync.

    Where brokers may know a former partition of that name, its epochs go on
    (:mod:`regent.controller.state.vanished_partitions`), and of the live replicas those are in sync
    that were: what they have is no less than what the others have.
    """
    result = FirstStates({}, {}, [], {})
    vanished = context.cluster.vanished_partitions
    first: dict[TopicPartition, LeaderAndIsr] = {}
    for tp in partitions:
        replicas = context.cluster.replicas(tp)
        live = tuple(r for r in replicas if context.is_replica_online(r, tp))
        if live:
            result.live[tp] = live
            first[tp] = _first_state(live, vanished.get(tp), context.term.epoch)
        else:
            result.failures[tp] = NoCandidate(f"none of its replicas {list(replicas)} is live")
    if not first:
        return result
    await create_parents(context, first)
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
    await _follow_vanished(context, result, log)
    return result


def _first_state(
    live: tuple[int, ...], former: LeaderAndIsr | None, controller_epoch: int
) -> LeaderAndIsr:
    if former is None or former.leader_epoch >= EPOCH_MAX:
        return LeaderAndIsr(live[0], INITIAL_LEADER_EPOCH, live, controller_epoch, 0)
    isr = tuple(replica for replica in live if replica in former.isr) or live
    return LeaderAndIsr(isr[0], former.leader_epoch + 1, isr, controller_epoch, 0)


async def _follow_vanished(
    context: ControllerContext, result: FirstStates, log: StructuredLog
) -> None:
    """Have the states of partitions whose names vanished partitions had exceed the partition epochs
    of those. ``result`` is corrected."""
    vanished = context.cluster.vanished_partitions
    former = {tp: known for tp in result.created if (known := vanished.get(tp)) is not None}
    if not former:
        return
    log.warning(
        "Partitions come into being whose names had others that somebody removed from ZooKeeper: "
        "their epochs go on, as brokers may know them",
        partitions=len(former),
        examples=examples(
            f"{tp}: leader epoch {result.created[tp].leader_epoch}, ISR "
            f"{list(result.created[tp].isr)}"
            for tp in former
        ),
    )
    states = {tp: result.created.pop(tp) for tp in former}
    reached = await exceed_former_epochs(context, states, former, log)
    for tp in (*reached.conflicts, *reached.failures):
        del reached.written[tp]
    result.created.update(reached.written)
    result.existing.extend(reached.conflicts)
    result.failures.update(reached.failures)
    vanished.forget(former)
