"""Brokers that are shutting down leave their partitions: others lead, the ISRs are without them.

All partitions of all such brokers are one set: one read, one write, one batch of requests.

- Where such a broker leads, the first in-sync replica that stays is elected
  (:data:`~regent.controller.transitions.election.CONTROLLED_SHUTDOWN`). If there is none, it leads
  on until it stops.
- Where it follows, it leaves the ISR: else the leader would wait for it, from the moment when it
  stops fetching to the end of its session.
- Its replica is stopped, whatever epoch the broker knows it under: brokers 2.6 to 3.3 refuse the
  epoch that they have (KAFKA-13972), and a former leader that begins to fetch is in the ISR again
  when it stops (KAFKA-14140). Upstream does not stop it. A fetch may come first, all the same:
  where leaders change ISRs themselves, their notification has the replica leave once more.

Source: ``KafkaController.doControlledShutdown``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.log import examples
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import ReplicaState
from regent.controller.transitions import election
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election_input import election_input
from regent.controller.transitions.leadership_changes import (
    Decision,
    LeaderAndMembers,
    change_leadership,
)
from regent.controller.transitions.partition_state_znodes import known_states
from regent.model.partition import LeaderAndIsr, TopicPartition


class _Leaving(NamedTuple):
    """A replica of a partition whose broker is shutting down."""

    broker_id: int
    tp: TopicPartition


async def release_partitions(
    active: ActiveController, partitions: Iterable[TopicPartition]
) -> None:
    """Have the brokers that are shutting down leave partitions, as far as others remain.

    Partitions with one replica stay with it, and so do those of topics that are to be deleted and
    those without a leader: what their ISR says may be all that is left.
    """
    context = active.context
    replicas = with_successors(context, partitions)
    if not replicas:
        return
    before = known_states(context, replicas)

    # Where no log directory has failed, partitions with the same replicas are decided alike.
    alike: dict[tuple[tuple[int, ...], int, tuple[int, ...]], LeaderAndMembers | None] = {}

    def decide(tp: TopicPartition, state: LeaderAndIsr) -> Decision:
        if context.has_offline_replicas:
            return _leadership_afterwards(context, tp, state)
        key = (replicas[tp], state.leader, state.isr)
        if key not in alike:
            alike[key] = _leadership_afterwards(context, tp, state)
        return alike[key]

    written, failures = await change_leadership(context, list(replicas), decide, active.log)
    batch = ControllerBrokerRequestBatch(context)
    recipients = _Recipients(context.shutting_down_broker_ids)
    batch.add_leaders_and_isrs(
        {
            tp: recipients[replicas[tp], before[tp].leader, state.leader]
            for tp, state in written.items()
        },
        is_new=False,
    )
    _stop_replicas(context, replicas, written, batch)
    await batch.send()
    if failures:
        active.log.error(
            "Partitions of shutting down brokers not changed",
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )


async def release_again(active: ActiveController, partitions: Iterable[TopicPartition]) -> None:
    """ISRs have changed: another replica may lead by now where none could, and a replica that was
    to be stopped may be in sync again."""
    context = active.context
    shutting_down = context.shutting_down_broker_ids
    if not shutting_down:
        return
    leadership = context.cluster.leadership
    again = [
        tp
        for tp in partitions
        if any(broker_id in leadership[tp].isr for broker_id in shutting_down)
    ]
    brokers = [context.cluster.brokers[broker_id] for broker_id in shutting_down]
    with context.trail.because(CauseKind.CONTROLLED_SHUTDOWN, brokers=brokers):
        await release_partitions(active, again)


def with_successors(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Those that a broker which is shutting down has to leave, with their replicas: there are
    others, and a leader was elected before."""
    leadership, replicas_of = context.cluster.leadership, context.cluster.replicas
    is_going = context.is_topic_queued_for_deletion
    return {
        tp: replicas
        for tp in partitions
        if tp in leadership and len(replicas := replicas_of(tp)) > 1 and not is_going(tp.topic)
    }


def _leadership_afterwards(
    context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr
) -> LeaderAndMembers | None:
    given = election_input(context, tp, state)
    if given is None or state.leader not in given.live_or_shutting_down:
        return None
    if state.leader in given.shutting_down:
        strategy = election.CONTROLLED_SHUTDOWN
        elected = strategy.elect(given)
        if elected is not None:
            return LeaderAndMembers(elected.leader, elected.isr, strategy.change)
    members = tuple(r for r in state.isr if r == state.leader or r not in given.shutting_down)
    if members == state.isr:
        return None
    return LeaderAndMembers(state.leader, members, ChangeKind.REPLICA_OFFLINE)


class _Recipients(dict[tuple[tuple[int, ...], int, int], list[int]]):
    """Who is told of a change, by replicas, former and present leader: the replicas that stay, the
    leader, and the former one, which must not go on leading."""

    def __init__(self, leaving: Collection[int]) -> None:
        super().__init__()
        self._leaving = leaving

    def __missing__(self, key: tuple[tuple[int, ...], int, int]) -> list[int]:
        replicas, former, leader = key
        told = [r for r in replicas if r not in self._leaving or r in (former, leader)]
        self[key] = told
        return told


def _stop_replicas(
    context: ControllerContext,
    replicas: Mapping[TopicPartition, tuple[int, ...]],
    written: Mapping[TopicPartition, LeaderAndIsr],
    batch: ControllerBrokerRequestBatch,
) -> None:
    """Stop what has left its ISR, unless that has been done before."""
    stopped: dict[int, list[TopicPartition]] = {}
    for broker_id, tp in _leaving(context, replicas):
        if tp in written or context.replica_state(broker_id, tp) is not ReplicaState.OFFLINE:
            stopped.setdefault(broker_id, []).append(tp)
    for broker_id, tps in stopped.items():
        batch.add_stop_replica(broker_id, tps, delete=False, checks_epoch=False)
        batch.add_update_metadata(tps)
        context.set_replica_states(broker_id, tps, ReplicaState.OFFLINE)


def _leaving(
    context: ControllerContext, replicas: Mapping[TopicPartition, tuple[int, ...]]
) -> Iterable[_Leaving]:
    """Replicas on brokers that are shutting down, and that are not in sync (any more)."""
    shutting_down, leadership = context.shutting_down_broker_ids, context.cluster.leadership
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}
    for tp, hosts in replicas.items():
        isr = leadership[tp].isr
        leaving = alike.get((hosts, isr))
        if leaving is None:
            leaving = tuple(b for b in hosts if b in shutting_down and b not in isr)
            alike[hosts, isr] = leaving
        for broker_id in leaving:
            yield _Leaving(broker_id, tp)
