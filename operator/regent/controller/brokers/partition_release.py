"""Brokers that are shutting down leave their partitions: others lead, the ISRs are without them.

All partitions of all such brokers are one set: one read, one write, one batch of requests.

- Where such a broker leads, the first in-sync replica that stays is elected
  (:data:`~regent.controller.transitions.election.CONTROLLED_SHUTDOWN`). If there is none, it leads
  on until it stops.
- Where it follows, it leaves the ISR: else the leader would wait for it, from the moment when it
  stops fetching to the end of its session. It is stopped before that is written, as upstream does:
  a leader that answers a fetch of it after it has learned of the smaller ISR has it in sync again,
  or waits for it with ``acks=all`` for ``replica.lag.time.max.ms``.
- Its replica is stopped, whatever epoch the broker knows it under: brokers 2.6 to 3.3 refuse the
  epoch that they have (KAFKA-13972), and a former leader that begins to fetch is in the ISR again
  when it stops (KAFKA-14140). Upstream does not stop it. A fetch may come first, all the same:
  where leaders change ISRs themselves, their notification has the replica leave once more.

Source: ``KafkaController.doControlledShutdown``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from regent.controller.active_controller import ActiveController
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
from regent.model.log import examples
from regent.model.partition import LeaderAndIsr, TopicPartition


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
    stopped = await _stop_followers(context, replicas, before)

    # Where no log directory has failed, partitions with the same replicas are decided alike.
    alike: dict[tuple[tuple[int, ...], int, tuple[int, ...]], LeaderAndMembers | None] = {}
    each_for_itself = context.has_offline_replicas

    def decide(tp: TopicPartition, state: LeaderAndIsr) -> Decision:
        if each_for_itself:
            return _leadership_afterwards(context, tp, state)
        key = (replicas[tp], state.leader, state.isr)
        if key not in alike:
            alike[key] = _leadership_afterwards(context, tp, state)
        return alike[key]

    written, failures = await change_leadership(
        context, list(replicas), decide, active.log, known=before
    )
    batch = ControllerBrokerRequestBatch(context)
    recipients = _Recipients(context.shutting_down_broker_ids)
    batch.add_leaders_and_isrs(
        {
            tp: recipients[replicas[tp], before[tp].leader, state.leader]
            for tp, state in written.items()
        },
        is_new=False,
    )
    _stop_replicas(context, replicas, written, stopped, batch)
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
    leadership, going = context.cluster.leadership, context.topics_to_be_deleted
    led = [tp for tp in partitions if tp in leadership and tp[0] not in going]
    return {
        tp: assignment.replicas
        for tp, assignment in zip(led, context.cluster.assignments_of_each(led), strict=True)
        if assignment is not None and len(assignment.replicas) > 1
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
    """Who is informed of a change, by replicas, former and present leader: the replicas that stay,
    the leader, and the former one, which must not go on leading."""

    def __init__(self, leaving: Collection[int]) -> None:
        super().__init__()
        self._leaving = leaving

    def __missing__(self, key: tuple[tuple[int, ...], int, int]) -> list[int]:
        replicas, former, leader = key
        informed = [r for r in replicas if r not in self._leaving or r in (former, leader)]
        self[key] = informed
        return informed


class _Leaving(dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]):
    """Hosts that are shutting down and not in sync (any more), by replicas and ISR."""

    def __init__(self, shutting_down: Collection[int]) -> None:
        super().__init__()
        self._shutting_down = shutting_down

    def __missing__(self, key: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[int, ...]:
        hosts, isr = key
        leaving = tuple(b for b in hosts if b in self._shutting_down and b not in isr)
        self[key] = leaving
        return leaving


async def _stop_followers(
    context: ControllerContext,
    replicas: Mapping[TopicPartition, tuple[int, ...]],
    states: Mapping[TopicPartition, LeaderAndIsr],
) -> dict[int, dict[TopicPartition, None]]:
    """Stop what follows a leader that stays; what was stopped, by broker."""
    shutting_down = context.shutting_down_broker_ids
    states_on = {broker_id: context.replica_states_on(broker_id) for broker_id in shutting_down}
    leaving = _Leaving(shutting_down)
    stopped: dict[int, dict[TopicPartition, None]] = {}
    for tp, hosts in replicas.items():
        if not context.is_replica_online(states[tp].leader, tp):
            continue
        for broker_id in leaving[hosts, ()]:
            if states_on[broker_id].get(tp) is not ReplicaState.OFFLINE:
                stopped.setdefault(broker_id, {})[tp] = None
    batch = ControllerBrokerRequestBatch(context)
    for broker_id, following in stopped.items():
        batch.add_stop_replica(broker_id, following, delete=False, checks_epoch=False)
        context.set_replica_states(broker_id, following, ReplicaState.OFFLINE)
    await batch.send()
    return stopped


def _stop_replicas(
    context: ControllerContext,
    replicas: Mapping[TopicPartition, tuple[int, ...]],
    written: Mapping[TopicPartition, LeaderAndIsr],
    stopped_first: Mapping[int, Mapping[TopicPartition, None]],
    batch: ControllerBrokerRequestBatch,
) -> None:
    """Stop what has left its ISR, unless that has been done before."""
    for followed in stopped_first.values():
        batch.add_update_metadata(followed)
    shutting_down, leadership = context.shutting_down_broker_ids, context.cluster.leadership
    states_on = {broker_id: context.replica_states_on(broker_id) for broker_id in shutting_down}
    leaving = _Leaving(shutting_down)
    stopped: dict[int, list[TopicPartition]] = {}
    for tp, hosts in replicas.items():
        for broker_id in leaving[hosts, leadership[tp].isr]:
            if tp in stopped_first.get(broker_id, ()):
                continue
            if tp in written or states_on[broker_id].get(tp) is not ReplicaState.OFFLINE:
                stopped.setdefault(broker_id, []).append(tp)
    for broker_id, tps in stopped.items():
        batch.add_stop_replica(broker_id, tps, delete=False, checks_epoch=False)
        batch.add_update_metadata(tps)
        context.set_replica_states(broker_id, tps, ReplicaState.OFFLINE)
