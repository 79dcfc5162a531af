"""The replica state machine: sets of replicas change state together, broker by broker.

Source: ``ReplicaStateMachine.scala``; the legal transitions are in ``state/states.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from regent.controller.effects import GiveWay
from regent.controller.giving_way import LookedAt
from regent.controller.state.causes import ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.hosted_replicas import Hosted, HostedReplicas
from regent.controller.state.states import REPLICA_PREVIOUS_STATES, ReplicaState
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.first_announcement import (
    COLLECTED_AT_ONCE,
    FirstAnnouncement,
    is_to_be_made,
    make_first_announcement,
)
from regent.controller.transitions.partition_epochs import read_states_again
from regent.controller.transitions.partition_state_znodes import (
    StatesRead,
    known_states,
    with_partition_epoch,
    write_on_known_states,
    write_partition_states,
)
from regent.model.log import StructuredLog, examples
from regent.model.partition import (
    NO_LEADER,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)

Replicas = Mapping[int, Iterable[TopicPartition]]
"""Replicas by the broker that hosts them."""


class ReplicaStateMachine:
    """Transitions of replicas. Keeps no state of its own: that is the context's."""

    def __init__(self, context: ControllerContext, log: StructuredLog) -> None:
        self._context = context
        self._log = log

    async def startup(self) -> None:
        """Initial states at failover, then one LeaderAndIsr per live broker with all its replicas.

        Replicas on live brokers start Online. What a broker that is shutting down has left is
        Offline, and stays stopped. Those on dead brokers start DeletionIneligible and go
        Offline at once, which takes them out of the ISRs. Replicas that a predecessor may have
        deleted at the end of a reassignment are not started again: that would copy them once more,
        only to be deleted.
        """
        context, leadership = self._context, self._context.cluster.leadership
        # The transition from Online to Online needs no validation: nothing else is there yet.
        batch = ControllerBrokerRequestBatch(context)
        started: dict[int, Mapping[TopicPartition, bool]] = {}
        offline: dict[int, Iterable[TopicPartition]] = {}
        leaving = _leaving_replicas(context)
        hosted, named, entries = await _first_announcement(context)
        for broker_id, partitions in hosted.items():
            await GiveWay()
            if broker_id in context.cluster.brokers:
                context.load_replica_states(broker_id, partitions, ReplicaState.ONLINE)
                led = named[broker_id]
                if broker_id in context.shutting_down_broker_ids:
                    stopped = [tp for tp in led if broker_id not in leadership[tp].isr]
                    context.set_replica_states(broker_id, stopped, ReplicaState.OFFLINE)
                    led = {tp: False for tp in led if broker_id in leadership[tp].isr}
                if broker_id in leaving:
                    led = {tp: False for tp in led if tp not in leaving[broker_id]}
                if led:
                    started[broker_id] = led
            else:
                context.load_replica_states(broker_id, partitions, ReplicaState.DELETION_INELIGIBLE)
                offline[broker_id] = partitions
        entries = {b: entries[b] for b, led in started.items() if led is named[b] and b in entries}
        if all(started.get(b) is led for b, led in named.items() if led):
            batch.add_first_of_everything(started, entries)
        else:
            await batch.add_first_leader_and_isr(started, entries)
        await batch.send()
        await self.handle_state_changes(offline, ReplicaState.OFFLINE)

    async def handle_state_changes(self, replicas: Replicas, target: ReplicaState) -> None:
        """Move replicas into a state and send the requests that follow from it.

        An illegal transition is logged and leaves its replica as it was.
        """
        batch = ControllerBrokerRequestBatch(self._context)
        for broker_id, partitions in replicas.items():
            valid = self._validate(broker_id, partitions, target)
            if valid:
                await self._transition(broker_id, valid, target, batch)
        await batch.send()

    def _validate(
        self, broker_id: int, partitions: Iterable[TopicPartition], target: ReplicaState
    ) -> list[TopicPartition]:
        previous = REPLICA_PREVIOUS_STATES[target]
        states = self._context.replica_states_on(broker_id)
        valid: list[TopicPartition] = []
        illegal: defaultdict[ReplicaState, list[TopicPartition]] = defaultdict(list)
        for tp in partitions:
            state = states.get(tp, ReplicaState.NON_EXISTENT)
            (valid if state in previous else illegal[state]).append(tp)
        for state, some in illegal.items():
            self._log.error(
                "Illegal replica transition",
                replica=broker_id,
                state=state.name,
                target=target.name,
                partitions=len(some),
                examples=examples(some),
            )
        return valid

    async def _transition(
        self,
        broker_id: int,
        partitions: Sequence[TopicPartition],
        target: ReplicaState,
        batch: ControllerBrokerRequestBatch,
    ) -> None:
        match target:
            case ReplicaState.NEW:
                partitions = self._become_new(broker_id, partitions, batch)
            case ReplicaState.ONLINE:
                self._become_online(broker_id, partitions, batch)
            case ReplicaState.OFFLINE:
                partitions = await self._become_offline(broker_id, partitions, batch)
            case ReplicaState.DELETION_STARTED:
                batch.add_stop_replica(broker_id, partitions, delete=True)
            case ReplicaState.NON_EXISTENT:
                self._forget(broker_id, partitions)
                return
            case ReplicaState.DELETION_SUCCESSFUL | ReplicaState.DELETION_INELIGIBLE:
                pass  # memory only
        self._trace(broker_id, partitions, target)
        self._context.set_replica_states(broker_id, partitions, target)

    def _trace(
        self, broker_id: int, partitions: Iterable[TopicPartition], target: ReplicaState
    ) -> None:
        if not self._log.traces_state_changes:
            return
        for tp in partitions:
            before = self._context.replica_state(broker_id, tp)
            self._log.state_change(f"{tp} on broker {broker_id}", before.name, target.name)

    def _become_new(
        self,
        broker_id: int,
        partitions: Sequence[TopicPartition],
        batch: ControllerBrokerRequestBatch,
    ) -> list[TopicPartition]:
        leadership = self._context.cluster.leadership
        accepted: list[TopicPartition] = []
        known: list[TopicPartition] = []
        for tp in partitions:
            current = leadership.get(tp)
            if current is not None and current.leader == broker_id:
                self._log.error(
                    "A new replica cannot be the leader", partition=str(tp), replica=broker_id
                )
                continue
            accepted.append(tp)
            if current is not None:
                known.append(tp)
        if known:
            batch.add_leader_and_isr((broker_id,), known, is_new=True)
        return accepted

    def _become_online(
        self,
        broker_id: int,
        partitions: Sequence[TopicPartition],
        batch: ControllerBrokerRequestBatch,
    ) -> None:
        context = self._context
        states, leadership = context.replica_states_on(broker_id), context.cluster.leadership
        announced = [
            tp for tp in partitions if states[tp] is not ReplicaState.NEW and tp in leadership
        ]
        if announced:
            batch.add_leader_and_isr((broker_id,), announced, is_new=False)
        for tp in partitions:
            if states[tp] is ReplicaState.NEW and broker_id not in context.cluster.replicas(tp):
                self._log.error(
                    "Replica missing from the assignment, added",
                    partition=str(tp),
                    replica=broker_id,
                )
                before = context.cluster.assignment(tp) or ReplicaAssignment(())
                replicas = (*before.replicas, broker_id)
                context.set_assignment(tp, msgspec.structs.replace(before, replicas=replicas))

    async def _become_offline(
        self,
        broker_id: int,
        partitions: Sequence[TopicPartition],
        batch: ControllerBrokerRequestBatch,
    ) -> list[TopicPartition]:
        """Stop replicas and take them out of the ISRs; the remaining replicas are informed.

        Where the ISR did not contain the replica nothing was written; the other replicas then have
        nothing to learn (upstream sends them a LeaderAndIsr that they ignore), but everybody does:
        the list of offline replicas.
        """
        context = self._context
        batch.add_stop_replica(broker_id, partitions, delete=False)
        leadership = context.cluster.leadership
        with_leadership = [tp for tp in partitions if tp in leadership]
        batch.add_update_metadata(tp for tp in partitions if tp not in leadership)
        changed, failed = await self._remove_from_isr(broker_id, with_leadership)
        batch.add_update_metadata(with_leadership)
        others = {
            tp: [r for r in context.cluster.replicas(tp) if r != broker_id]
            for tp in changed
            if not context.is_topic_queued_for_deletion(tp.topic)
        }
        batch.add_leaders_and_isrs(others, is_new=False)
        return [tp for tp in partitions if tp not in failed]

    async def _remove_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
        """Remove a replica from ISRs in ZooKeeper; the leader becomes -1 where it led.

        The last member of an ISR stays (KAFKA-5083): the partition has no leader, and its only
        in-sync replica is remembered. So do all members where none is left: nobody has led without
        any of them, so each has every committed record, and the first one that returns may lead.

        What is known to be in an ISR is written without being read. Where that state is out of
        date, and everything else, is read.

        Returns:
            The partitions whose leader epoch has risen, and failures with reasons.
        """
        context = self._context
        known = known_states(context, partitions)
        written = await write_on_known_states(context, self._shrunk(broker_id, known))
        context.cluster.set_leadership(written, ChangeKind.REPLICA_OFFLINE)
        changed: list[TopicPartition] = list(written)
        failures: dict[TopicPartition, str] = {}
        remaining: Sequence[TopicPartition] = [tp for tp in partitions if tp not in written]
        while remaining:
            read = await read_states_again(context, remaining, self._log)
            self._note_unusable(broker_id, read, failures)
            shrunk = self._shrunk(broker_id, read.states)
            unchanged = {tp: state for tp, state in read.states.items() if tp not in shrunk}
            changed.extend(self._observe(unchanged, failures))
            outcome = await write_partition_states(context, shrunk)
            context.cluster.set_leadership(
                outcome.written, ChangeKind.REPLICA_OFFLINE, based_on=read.states
            )
            changed.extend(outcome.written)
            failures |= outcome.failures
            remaining = outcome.conflicts
        # What cannot be read or written must not keep a topic from being deleted.
        is_going = context.is_topic_queued_for_deletion
        failures = {tp: reason for tp, reason in failures.items() if not is_going(tp.topic)}
        if failures:
            self._log.error(
                "Replicas not removed from the ISR",
                replica=broker_id,
                partitions=len(failures),
                examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
            )
        return changed, failures

    def _shrunk(
        self, broker_id: int, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The new states of partitions that have the broker in their ISR."""
        epoch = self._context.term.epoch
        shrunk: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, state in states.items():
            if broker_id not in state.isr or state.controller_epoch > epoch:
                continue
            stays = len(state.isr) > 1 and self._is_nobody_left(tp, state)
            if not stays or state.leader == broker_id:
                shrunk[tp] = without_replica(state, broker_id, epoch, stays=stays)
        return shrunk

    def _is_nobody_left(self, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        """Whether no member of the ISR is there, be it on a broker that is shutting down."""
        return not self._context.live_replicas(tp, state.isr)

    def _note_unusable(
        self, broker_id: int, read: StatesRead, failures: dict[TopicPartition, str]
    ) -> None:
        context = self._context
        failures |= dict.fromkeys(read.missing, "its state znode does not exist") | read.failures
        for tp in read.failures:
            known, stored = context.cluster.leadership[tp], read.set_back.get(tp)
            if stored is not None and with_partition_epoch(stored, known.partition_epoch) == known:
                continue  # what is known is true, and the partition epoch is to be exceeded
            if known.leader == broker_id:
                # A leader that returns must not be sent an ISR that may be out of date: it
                # would commit records that its true ISR does not have.
                context.cluster.forget_leadership(tp)

    def _observe(
        self, states: Mapping[TopicPartition, LeaderAndIsr], failures: dict[TopicPartition, str]
    ) -> list[TopicPartition]:
        """Take over states in which there is nothing to be changed. Returns those that were our own
        writes, whose answers were lost: no broker was sent them."""
        cluster, epoch = self._context.cluster, self._context.term.epoch
        ours: list[TopicPartition] = []
        observed: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, state in states.items():
            if state.controller_epoch > epoch:
                self._context.note_epoch_above(state.controller_epoch)
                failures[tp] = f"its state has controller epoch {state.controller_epoch}"
                continue
            known = cluster.leadership[tp]
            if state.leader_epoch > known.leader_epoch:
                ours.append(tp)
            if state != known:
                observed[tp] = state
        cluster.set_leadership(observed, ChangeKind.OBSERVED)
        return ours

    def _forget(self, broker_id: int, partitions: Sequence[TopicPartition]) -> None:
        """The broker does not host them any more: neither is anything else known of them there."""
        self._context.refusals.forget_replicas(broker_id, partitions)
        self._context.change_replicas_on_offline_dirs(broker_id, failed=(), recovered=partitions)
        for tp in partitions:
            assignment = self._context.cluster.assignment(tp)
            if assignment is not None:
                self._context.set_assignment(tp, assignment.remove_replica(broker_id))
            self._context.set_replica_state(broker_id, tp, ReplicaState.NON_EXISTENT)


async def _first_announcement(context: ControllerContext) -> FirstAnnouncement:
    """Made now, as far as no standby has made it."""
    cluster = context.cluster
    entries, hosted = cluster.announced_states.take_entries(), cluster.take_hosted()
    if is_to_be_made(context):
        return await make_first_announcement(context)
    hosted = hosted or await _collect(context)
    leadership, led = cluster.leadership, hosted
    if len(leadership) < cluster.partition_count:
        led = {}
        for broker_id, partitions in hosted.items():
            led[broker_id] = {tp: False for tp in partitions if tp in leadership}
            await GiveWay()
    return FirstAnnouncement(hosted, led, entries)


async def _collect(context: ControllerContext) -> Hosted:
    """The partitions of each broker, those of one topic next to each other."""
    collected, looked_at = HostedReplicas(), LookedAt(COLLECTED_AT_ONCE)
    for topic in context.cluster.topics:
        partitions = context.cluster.partitions_of(topic)
        collected.add(partitions)
        if looked_at.is_a_part_with(len(partitions)):
            await GiveWay()
    return collected.by_broker


def _leaving_replicas(context: ControllerContext) -> dict[int, dict[TopicPartition, None]]:
    """By broker, replicas that leave partitions whose reassignment is about to end: the target is
    in sync, they are not any more."""
    leaving: dict[int, dict[TopicPartition, None]] = {}
    for tp in context.cluster.partitions_being_reassigned:
        assignment, state = context.cluster.assignment(tp), context.cluster.leadership.get(tp)
        if assignment is None or state is None:
            continue
        if any(replica not in state.isr for replica in assignment.target_replicas):
            continue
        for replica in assignment.removing_replicas:
            if replica not in state.isr:
                leaving.setdefault(replica, {})[tp] = None
    return leaving


def without_replica(
    state: LeaderAndIsr, replica: int, controller_epoch: int, *, stays: bool = False
) -> LeaderAndIsr:
    """Leadership after ``replica`` went offline: one leader epoch on, without it in the ISR unless
    it is the last member, or ``stays`` there."""
    keeps_isr = stays or state.isr == (replica,)
    return LeaderAndIsr(
        leader=NO_LEADER if state.leader == replica else state.leader,
        leader_epoch=state.leader_epoch + 1,
        isr=state.isr if keeps_isr else tuple(r for r in state.isr if r != replica),
        controller_epoch=controller_epoch,
        partition_epoch=state.partition_epoch,
        leader_recovery_state=state.leader_recovery_state,
    )


def by_broker(
    context: ControllerContext,
    partitions: Iterable[TopicPartition],
    condition: Callable[[int, TopicPartition], bool] = lambda _broker, _tp: True,
) -> dict[int, list[TopicPartition]]:
    """Assigned replicas of partitions, grouped by broker, that meet a condition."""
    grouped: dict[int, list[TopicPartition]] = {}
    for tp in partitions:
        for broker_id in context.cluster.replicas(tp):
            if condition(broker_id, tp):
                grouped.setdefault(broker_id, []).append(tp)
    return grouped
