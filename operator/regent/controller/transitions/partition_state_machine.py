"""The partition state machine: sets of partitions change state together.

A transition reads what it needs in bulk, decides every partition by itself, writes in bulk and
adds to one batch of requests. An illegal transition and a failed election leave their partition as
it was and are reported; they never disturb the others.

Source: ``PartitionStateMachine.scala``; the legal transitions are in ``state/states.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from regent.controller.configs.unclean_election_config import unclean_election_flags
from regent.controller.giving_way import give_way_after, in_parts
from regent.controller.state.causes import ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PARTITION_PREVIOUS_STATES, PartitionState
from regent.controller.transitions import election
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election import (
    Elected,
    ElectionStrategy,
    UncleanElection,
)
from regent.controller.transitions.election_input import election_input
from regent.controller.transitions.failed_elections import Failures, NoCandidate, note_outcome
from regent.controller.transitions.first_states import create_first_states
from regent.controller.transitions.partition_epochs import read_states_again
from regent.controller.transitions.partition_state_znodes import (
    known_states,
    write_on_known_states,
    write_partition_states,
)
from regent.model.log import StructuredLog, examples
from regent.model.partition import LeaderAndIsr, TopicPartition

_leader_of = attrgetter("leader")


class _Decision(NamedTuple):
    """An election that has succeeded, and who is informed of it by LeaderAndIsr."""

    elected: Elected
    recipients: tuple[int, ...]


class PartitionStateMachine:
    """Transitions of partitions. Keeps no state of its own: that is the context's."""

    def __init__(self, context: ControllerContext, log: StructuredLog) -> None:
        self._context = context
        self._log = log

    async def startup_states(self, *, unreadable: Collection[TopicPartition] = ()) -> None:
        """Initial states at failover: New without leadership, Online if the leader is live (or
        shutting down, which it does until it is gone), else Offline.

        Args:
            unreadable: Partitions whose state znode is malformed. They are Offline: it is unknown
                their leader, and as New they would be taken for partitions that never had one.
        """
        context = self._context
        leadership = context.cluster.leadership
        live = frozenset(context.cluster.brokers)
        states = dict.fromkeys(leadership, PartitionState.ONLINE)  # their hashes are known
        if len(leadership) < context.cluster.partition_count:
            for some in in_parts(context.cluster.all_partitions()):
                new = (tp for tp in some if tp not in leadership)
                states.update(dict.fromkeys(new, PartitionState.NEW))
                await give_way_after(some)
        are_live = True
        for known in in_parts(leadership.values()):
            are_live = are_live and live.issuperset(map(_leader_of, known))
            await give_way_after(known)
        if not are_live:
            for tp, current in leadership.items():
                if current.leader not in live:
                    states[tp] = PartitionState.OFFLINE
        states.update(dict.fromkeys(unreadable, PartitionState.OFFLINE))
        context.load_partition_states(states)

    async def trigger_online(self, *, topics: Collection[str] | None = None) -> Failures:
        """Try to elect leaders for all New and Offline partitions (of some topics, if given)."""
        context = self._context
        without_leader = context.partitions_without_leader
        if topics is None:
            return await self._elect_online(list(without_leader))
        return await self._elect_online(
            tp
            for topic in topics
            for tp in context.cluster.partitions_of(topic)
            if tp in without_leader
        )

    async def trigger_online_for(
        self,
        partitions: Iterable[TopicPartition],
        strategy: ElectionStrategy = election.OFFLINE,
    ) -> Failures:
        """Try to elect leaders for those of ``partitions`` that are New or Offline.

        For a broker that comes or goes these are the partitions of its replicas: it changes nothing
        for the others, of which there may be many (upstream tries them all). Elections that failed
        for a reason whose end no watch reports are repeated with them.
        """
        context = self._context
        without_leader = context.partitions_without_leader
        candidates = dict.fromkeys(
            tp for tp in chain(partitions, context.elections_to_repeat) if tp in without_leader
        )
        return await self._elect_online(candidates, strategy)

    async def _elect_online(
        self,
        partitions: Iterable[TopicPartition],
        strategy: ElectionStrategy = election.OFFLINE,
    ) -> Failures:
        queued = self._context.is_topic_queued_for_deletion
        return await self.handle_state_changes(
            [tp for tp in partitions if not queued(tp.topic)],
            PartitionState.ONLINE,
            strategy,
        )

    async def handle_state_changes(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        strategy: ElectionStrategy | None = None,
    ) -> Failures:
        """Move partitions into a state and send the requests that follow from it.

        Args:
            strategy: How to elect; required for the target ONLINE.

        Returns:
            The partitions that stayed where they were, with reasons. An illegal transition is
            logged as an error.
        """
        valid, failures = self._validate(partitions, target)
        if not valid:
            return failures
        if target is PartitionState.ONLINE:
            assert strategy is not None, "an election needs a strategy"
            batch = ControllerBrokerRequestBatch(self._context)
            failures |= await self._become_online(valid, strategy, batch)
            await batch.send()
        else:
            for tp in valid:
                self._set_state(tp, target)
        return failures

    def _validate(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> tuple[list[TopicPartition], Failures]:
        previous = PARTITION_PREVIOUS_STATES[target]
        valid: list[TopicPartition] = []
        illegal: defaultdict[PartitionState, list[TopicPartition]] = defaultdict(list)
        for tp in partitions:
            state = self._context.partition_state(tp)
            (valid if state in previous else illegal[state]).append(tp)
        failures: Failures = {}
        for state, some in illegal.items():
            failures |= dict.fromkeys(
                some, f"illegal transition from {state.name} to {target.name}"
            )
            self._log.error(
                "Illegal partition transition",
                state=state.name,
                target=target.name,
                partitions=len(some),
                examples=examples(some),
            )
        return valid, failures

    def _set_state(self, tp: TopicPartition, target: PartitionState, **fields: object) -> None:
        if self._log.traces_state_changes:
            before = self._context.partition_state(tp)
            self._log.state_change(tp, before.name, target.name, **fields)
        self._context.set_partition_state(tp, target)

    async def _become_online(
        self,
        partitions: Sequence[TopicPartition],
        strategy: ElectionStrategy,
        batch: ControllerBrokerRequestBatch,
    ) -> Failures:
        state_of = self._context.partition_state
        new = [tp for tp in partitions if state_of(tp) is PartitionState.NEW]
        electable = [tp for tp in partitions if state_of(tp) is not PartitionState.NEW]
        failures: Failures = {}
        if new:
            failures, existing = await self._initialize(new, batch)
            if existing:
                # The state znode of a partition that we hold to be new: written by a creation of
                # ours whose answer was lost with the connection, or by a predecessor. Upstream
                # leaves such a partition New until some later event; reading settles it.
                failures |= await self._elect(existing, election.OFFLINE, batch, is_new=True)
                for tp in existing:
                    if state_of(tp) is PartitionState.NEW:
                        self._set_state(tp, PartitionState.OFFLINE)
        if electable:
            failures |= await self._elect(electable, strategy, batch, is_new=False)
        note_outcome(self._context, self._log, partitions, failures, strategy)
        return failures

    # The first leader of a partition

    async def _initialize(
        self, partitions: Sequence[TopicPartition], batch: ControllerBrokerRequestBatch
    ) -> tuple[Failures, list[TopicPartition]]:
        """Give partitions their first leaders.

        Returns:
            Failures, and partitions whose state znode exists already.
        """
        created, live, existing, failures = await create_first_states(
            self._context, partitions, self._log
        )
        self._context.cluster.set_leadership(created, ChangeKind.FIRST_LEADER)
        batch.add_leaders_and_isrs({tp: live[tp] for tp in created}, is_new=True)
        for tp, state in created.items():
            self._set_state(tp, PartitionState.ONLINE, leader=state.leader, isr=state.isr)
        return failures, existing

    # Later leaders

    async def _elect(
        self,
        partitions: Sequence[TopicPartition],
        strategy: ElectionStrategy,
        batch: ControllerBrokerRequestBatch,
        *,
        is_new: bool,
    ) -> Failures:
        """Elect until every partition has a leader or a reason.

        An election is tried on the state that is known. Where that is out of date, and where it
        allows no election, the state is read and decided again: so is a conflicting ISR change by
        a leader.
        """
        known = self._not_from_the_future(known_states(self._context, partitions), {})
        decisions = await self._run_strategy(known, strategy, {})
        written = await write_on_known_states(self._context, self._elected(known, decisions))
        self._take_over(written, decisions, strategy, batch, based_on=known, is_new=is_new)
        failures: Failures = {}
        remaining: Sequence[TopicPartition] = [tp for tp in partitions if tp not in written]
        while remaining:
            read = await read_states_again(self._context, remaining, self._log)
            failures |= read.failures
            failures |= dict.fromkeys(read.missing, "its state znode does not exist")
            current = self._not_from_the_future(read.states, failures)
            decisions = await self._run_strategy(current, strategy, failures)
            outcome = await write_partition_states(self._context, self._elected(current, decisions))
            failures |= outcome.failures
            self._take_over(
                outcome.written, decisions, strategy, batch, based_on=current, is_new=is_new
            )
            remaining = outcome.conflicts
        return failures

    def _elected(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        decisions: Mapping[TopicPartition, _Decision],
    ) -> dict[TopicPartition, LeaderAndIsr]:
        epoch = self._context.term.epoch
        return {
            tp: LeaderAndIsr(
                elected.leader,
                states[tp].leader_epoch + 1,
                elected.isr,
                epoch,
                states[tp].partition_epoch,
                elected.leader_recovery_state,
            )
            for tp, (elected, _) in decisions.items()
        }

    def _take_over(
        self,
        written: dict[TopicPartition, LeaderAndIsr],
        decisions: dict[TopicPartition, _Decision],
        strategy: ElectionStrategy,
        batch: ControllerBrokerRequestBatch,
        *,
        based_on: dict[TopicPartition, LeaderAndIsr],
        is_new: bool,
    ) -> None:
        self._set_leadership(written, decisions, strategy, based_on=based_on)
        self._apply(written, decisions, batch, is_new=is_new)

    def _not_from_the_future(
        self, states: dict[TopicPartition, LeaderAndIsr], failures: Failures
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Leave out partitions that a controller with a higher epoch has written."""
        epoch = self._context.term.epoch
        for tp, state in states.items():
            if state.controller_epoch > epoch:
                self._context.note_epoch_above(state.controller_epoch)
                failures[tp] = (
                    f"its state was written under controller epoch {state.controller_epoch}, "
                    f"ours is {epoch}"
                )
        return {tp: state for tp, state in states.items() if state.controller_epoch <= epoch}

    async def _run_strategy(
        self,
        states: dict[TopicPartition, LeaderAndIsr],
        strategy: ElectionStrategy,
        failures: Failures,
    ) -> dict[TopicPartition, _Decision]:
        unclean = await self._unclean_flags(states, strategy, failures)
        decisions: dict[TopicPartition, _Decision] = {}
        for tp, state in states.items():
            if tp in failures:
                continue
            given = election_input(self._context, tp, state, unclean_enabled=unclean.get(tp, False))
            elected = None if given is None else strategy.elect(given)
            if given is None or elected is None:
                failures[tp] = NoCandidate(
                    f"strategy {strategy.name} finds no leader: replicas "
                    f"{list(self._context.cluster.replicas(tp))}, ISR {list(state.isr)}"
                )
            else:
                decisions[tp] = _Decision(elected, strategy.recipients(given))
        return decisions

    async def _unclean_flags(
        self,
        states: dict[TopicPartition, LeaderAndIsr],
        strategy: ElectionStrategy,
        failures: Failures,
    ) -> dict[TopicPartition, bool]:
        """Whether an unclean election is allowed, for partitions none of whose ISR is live.

        Only those cost reading their topic's configuration. One that cannot be read allows no
        election at all.
        """
        if strategy.unclean is UncleanElection.NEVER:
            return {}
        context = self._context
        dead = [
            tp
            for tp, state in states.items()
            if not any(
                context.is_replica_online(r, tp, include_shutting_down=True) for r in state.isr
            )
        ]
        if strategy.unclean is UncleanElection.ALWAYS:
            return dict.fromkeys(dead, True)
        if not dead:
            return {}
        flags = await unclean_election_flags(
            context, list(dict.fromkeys(tp.topic for tp in dead)), self._log
        )
        for tp in dead:
            if flags[tp.topic] is None:
                failures[tp] = "the configuration of its topic cannot be read"
        return {tp: bool(flags[tp.topic]) for tp in dead}

    def _set_leadership(
        self,
        written: dict[TopicPartition, LeaderAndIsr],
        decisions: dict[TopicPartition, _Decision],
        strategy: ElectionStrategy,
        *,
        based_on: dict[TopicPartition, LeaderAndIsr],
    ) -> None:
        unclean = {tp: state for tp, state in written.items() if decisions[tp].elected.unclean}
        cluster = self._context.cluster
        if unclean:
            cluster.set_leadership(unclean, ChangeKind.ELECTED_UNCLEAN, based_on=based_on)
            written = {tp: state for tp, state in written.items() if tp not in unclean}
        cluster.set_leadership(written, strategy.change, based_on=based_on)

    def _apply(
        self,
        written: dict[TopicPartition, LeaderAndIsr],
        decisions: dict[TopicPartition, _Decision],
        batch: ControllerBrokerRequestBatch,
        *,
        is_new: bool,
    ) -> None:
        batch.add_leaders_and_isrs({tp: decisions[tp].recipients for tp in written}, is_new=is_new)
        for tp, state in written.items():
            self._set_state(
                tp,
                PartitionState.ONLINE,
                leader=state.leader,
                isr=state.isr,
                leader_epoch=state.leader_epoch,
            )
            if decisions[tp].elected.unclean:
                self._context.unclean_leader_elections += 1
                self._log.warning(
                    "Unclean leader election: committed records may be lost",
                    partition=str(tp),
                    leader=state.leader,
                )
