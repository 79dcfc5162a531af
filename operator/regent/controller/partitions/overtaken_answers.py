"""Leaders that an answer reaches after a higher leader epoch: they may have to ask anew.

In Kafka 2.7 and 2.8 a leader keeps one change for each partition, which waits to be sent or
answered. A LeaderAndIsr with a higher leader epoch drops it, so that the leader may ask for the
next one. But an answer takes away whatever waits for its partition, the next change included. Then
the leader takes a change for pending that nobody has, and asks for nothing more: the ISR stays as
it is, and a reassignment does not end.

That can be wherever the leader epoch is higher than that of the change that is answered, and where
it is raised while the answer is on its way. From outside it looks like a leader that has nothing to
ask for. So if the partition's state is the same some seconds later, its leader epoch is raised once
more. Followers then compare their logs with the leader's, and nothing else comes of it.

A controller may not live to see to it. So before it gives such an answer, or raises the leader
epoch of a leader that it has just answered, it leaves a note in ZooKeeper
(``znodes/overtaken_answer_notes.py``), from which its successor goes on. What a predecessor has
answered in its last moments may be on its way when the successor raises leader epochs, in the
failover for instance; it looks after those leaders, too, and notes until then that its term has
just begun.

A broker's controller sees to nothing, and leaves no notes. So after a failover the leader epoch is
also raised wherever the ISR lacks a live replica and nothing changes. What a broker's controller
has lost of changes that were to take a replica out cannot be seen: the ISR looks complete. The next
leader epoch ends that, at the latest when the replica's broker stops.

Newer leaders keep a change until it is answered, and ask for no other before. An epoch too many
does them no harm: a leader whose version is not known gets one.

Source: ``AlterIsrManagerImpl`` (2.7) and ``DefaultAlterIsrManager`` (2.8), ``clearPending`` and
``handleAlterIsrResponse``; ``Partition.makeLeader``. From 3.0 on there is no ``clearPending``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import IsrChange
from regent.controller.brokers.announcement import REGISTRATION_SINCE_2_7
from regent.controller.brokers.reported_facts import facts_of_live_brokers
from regent.controller.effects import ArmTimer
from regent.controller.events import AnswersOvertaken
from regent.controller.partitions.waiting_leaders import raise_leader_epochs
from regent.controller.state.answered_leaders import (
    ASK_SINCE,
    KEEP_CHANGES_SINCE,
    AnsweredLeader,
)
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.znodes import overtaken_answer_notes
from regent.model.cluster import Broker
from regent.model.partition import KnownEpochs, LeaderAndIsr, TopicPartition
from regent.model.topic_config import BrokerFacts

INTERVAL_MS: Final = 3_000
"""Until a leader has certainly taken its answer, and has asked for what it lacks."""

TIMER: Final = "answers overtaken by leader epochs"


def answer_to(
    context: ControllerContext, change: IsrChange, *, sender: int, current: LeaderAndIsr
) -> AnsweredLeader | None:
    """Who is answered about a change; None if a higher leader epoch that overtakes the answer does
    no harm."""
    is_concerned = (
        isinstance(change.topic, str)
        and sender == current.leader
        and _may_lose_changes(context, sender)
    )
    return AnsweredLeader(sender, change.leader_epoch) if is_concerned else None


async def expect_overtaken(
    context: ControllerContext, answers: Mapping[TopicPartition, AnsweredLeader]
) -> None:
    """Leaders are about to be answered: look after them later.

    Args:
        answers: Those that may be overtaken. They were added to the answered leaders before
            anything was decided: a leader epoch that is raised since overtakes whoever's answer.
    """
    leadership = context.cluster.leadership
    overtaken = {
        tp: answer.leader_epoch
        for tp, answer in answers.items()
        if tp in leadership and answer.leader_epoch < leadership[tp].leader_epoch
    }
    await overtaken_answer_notes.remember(context, overtaken, guard=epoch_guard(context))
    await _await_end_of_interval(context)


async def _await_end_of_interval(context: ControllerContext) -> None:
    answered = context.answered_leaders
    if not answered.is_timed and (answered or answered.begun_terms):
        answered.is_timed = True
        await ArmTimer(TIMER, INTERVAL_MS, AnswersOvertaken())


async def begin_term(active: ActiveController) -> None:
    """Note that leader epochs are raised from now on while answers of predecessors may be on their
    way. To be called in the failover, before any is."""
    context = active.context
    answered = context.answered_leaders
    answered.is_first_interval = await _some_leaders_may_lose_changes(context)
    if answered.is_first_interval:
        begun = await overtaken_answer_notes.read_begun_terms(active.log)
        terms = (*begun, context.term.epoch)
        await overtaken_answer_notes.note_begun_terms(context, terms, guard=epoch_guard(context))


async def expect_overtaken_by_predecessors(active: ActiveController) -> None:
    """Leaders may have had such answers before this term: look after them later.

    To be called at the end of the failover. A partition that has been written since it began has a
    new leader epoch, and is looked after for that.
    """
    context = active.context
    answered, leadership = context.answered_leaders, context.cluster.leadership
    await overtaken_answer_notes.read(context, active.log)
    answered.watch(
        {
            tp: leadership[tp]
            for tp, leader_epoch in answered.noted.items()
            if tp in leadership and leadership[tp].leader_epoch > leader_epoch
        }
    )
    if answered.is_first_interval:
        own, begun = context.term.epoch, frozenset(answered.begun_terms)
        answered.watch(
            {
                tp: state
                for tp, state in leadership.items()
                if state.controller_epoch != own
                and (state.controller_epoch in begun or _lacks_live_replica(context, tp, state))
            }
        )
    await overtaken_answer_notes.forget(
        context, [tp for tp in answered.noted if tp not in answered], guard=epoch_guard(context)
    )
    await _await_end_of_interval(context)


def _lacks_live_replica(
    context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr
) -> bool:
    replicas = context.cluster.replicas(tp)
    return len(state.isr) < len(replicas) and any(
        replica not in state.isr and context.is_replica_online(replica, tp) for replica in replicas
    )


async def process_answers_overtaken(active: ActiveController) -> None:
    """Raise the leader epochs of partitions that nothing has happened to for an interval."""
    context = active.context
    answered, leadership = context.answered_leaders, context.cluster.leadership
    is_beginning, answered.is_first_interval = answered.is_first_interval, False
    unchanged = answered.unchanged(leadership)
    await raise_leader_epochs(
        active,
        {
            tp: KnownEpochs(state.leader_epoch)
            for tp, state in unchanged.items()
            if _may_lose_changes(context, state.leader)
            and not context.is_topic_queued_for_deletion(tp.topic)
        },
    )
    answered.next_interval(leadership, settled=unchanged)
    await overtaken_answer_notes.forget(
        context, [tp for tp in answered.noted if tp not in answered], guard=epoch_guard(context)
    )
    if answered.begun_terms and not is_beginning:
        await overtaken_answer_notes.note_begun_terms(context, (), guard=epoch_guard(context))
    answered.is_timed = False
    await _await_end_of_interval(context)


async def _some_leaders_may_lose_changes(context: ControllerContext) -> bool:
    """Whether brokers ask the controller for ISR changes, and may be of a release in which that
    happens. While the brokers are upgraded some of them may, although not all do."""
    protocol, brokers = context.cluster.inter_broker_protocol, context.cluster.brokers
    if protocol >= KEEP_CHANGES_SINCE:
        return False
    facts = await facts_of_live_brokers(context)
    return any(
        reported.versions[0] < KEEP_CHANGES_SINCE
        and _may_ask(brokers[broker_id], reported, protocol)
        for broker_id, reported in facts.items()
    )


def _may_ask(broker: Broker, reported: BrokerFacts, lowest: tuple[int, int]) -> bool:
    """Whether a broker may ask the controller for ISR changes: by the protocol version that it has
    said; if it has not, by its registration, or by the lowest one of the cluster."""
    if reported.protocol_version is not None:
        return reported.protocol_version >= ASK_SINCE
    return lowest >= ASK_SINCE or broker.registration_version >= REGISTRATION_SINCE_2_7


def _may_lose_changes(context: ControllerContext, leader: int) -> bool:
    """Whether a broker may be of a release in which that happens. One that is gone is not."""
    broker = context.cluster.brokers.get(leader)
    return broker is not None and context.broker_facts.of(broker).versions[0] < KEEP_CHANGES_SINCE
