"""AlterPartition: leaders ask for changes of ISRs (inter.broker.protocol.version 2.7 and newer).

What several brokers have asked meanwhile is processed together: one write for all changes, each
conditional on the version of its node. (Upstream processes each request alone, and announces also
what it has refused.)

Until its leader has an answer, all ISR changes of that broker wait. So the answer leaves when the
write is confirmed, and what follows is events of their own: the announcement of what has changed
(``isr_announcements.py``), reassignments that have become complete, leaders on brokers that are
stopping for which there is a successor now, replicas of a former topic that have left. Only the
higher leader epoch that a refused leader would wait for is written first: nobody after us would
know of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    Asked,
    IsrChange,
    IsrChangeResult,
)
from regent.controller.brokers.partition_release import release_again
from regent.controller.effects import Enqueue, PublishView
from regent.controller.events import IsrChangesMade, PartitionReassignmentIsrChange
from regent.controller.log import ISR_CHANGES_NOT_WRITTEN
from regent.controller.partitions.isr_announcements import announce_soon
from regent.controller.partitions.isr_change_rules import decide
from regent.controller.partitions.overtaken_answers import answer_to, expect_overtaken
from regent.controller.partitions.senders_ahead import SenderAhead, read_what_is_stored, report
from regent.controller.partitions.waiting_leaders import is_left_waiting, raise_leader_epochs
from regent.controller.state.answered_leaders import AnsweredLeader
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.term.cluster_loading import refresh_leadership
from regent.controller.topics.stray_replicas import take_isr_changes
from regent.controller.transitions.partition_state_znodes import write_partition_states
from regent.model.log import examples
from regent.model.partition import KnownEpochs, LeaderAndIsr, TopicPartition
from regent.protocol.error_codes import (
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NONE,
    NOT_CONTROLLER,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)


class _Place(NamedTuple):
    """Where a result belongs: the number of the request and of the change in it."""

    request: int
    change: int


class _Change(NamedTuple):
    place: _Place
    tp: TopicPartition
    sender: int
    wanted: IsrChange


async def process_alter_partition(
    active: ActiveController, asked: Sequence[Asked[AlterPartitionRequest]]
) -> list[AlterPartitionResponse]:
    """Make the changes that the rules allow. Returns an answer for each request."""
    context = active.context
    requests = [each.request for each in asked]
    results: dict[_Place, IsrChangeResult] = {}
    waiting: dict[TopicPartition, KnownEpochs] = {}
    changes = _identify(context, requests, results)
    answers = dict(_answered(context, changes))
    context.answered_leaders.add(answers)
    with context.trail.because(
        CauseKind.ISR_CHANGE,
        brokers=[
            context.cluster.brokers[broker_id]
            for broker_id in dict.fromkeys(change.sender for change in changes)
        ],
    ):
        changed: dict[TopicPartition, None] = {}
        for round_ in _rounds(changes):
            changed.update(dict.fromkeys(await _make(active, round_, results)))
            changed.update(dict.fromkeys(await _settle_ahead(active, round_, results)))
            waiting.update(_left_waiting(context, round_, results))
        raised = await raise_leader_epochs(active, waiting)
    await expect_overtaken(context, answers)
    await announce_soon(context, (tp for tp in changed if tp not in raised))
    moving = tuple(tp for tp in changed if tp in context.cluster.partitions_being_reassigned)
    if moving:
        await Enqueue(PartitionReassignmentIsrChange(moving))
    allowing_more = tuple(tp for tp in changed if _allows_more(context, tp))
    if allowing_more:
        await Enqueue(IsrChangesMade(allowing_more))
    return [
        AlterPartitionResponse(
            NONE, tuple(results[_Place(number, i)] for i in range(len(request.changes)))
        )
        if _is_alive(context, request)
        else AlterPartitionResponse(STALE_BROKER_EPOCH)
        for number, request in enumerate(requests)
    ]


def _allows_more(context: ControllerContext, tp: TopicPartition) -> bool:
    """Whether a broker that is stopping is in the ISR, or what some broker has of the partition may
    be of a former topic."""
    isr = context.cluster.leadership[tp].isr
    return any(broker_id in isr for broker_id in context.shutting_down_broker_ids) or any(
        tp in doubtful for doubtful in context.doubtful_replicas.values()
    )


async def process_isr_changes_made(
    active: ActiveController, partitions: Sequence[TopicPartition]
) -> None:
    """Do what ISR changes allow, as where leaders write ISRs themselves."""
    known = [tp for tp in partitions if tp in active.context.cluster.leadership]
    await release_again(active, known)
    await take_isr_changes(active, known)
    await PublishView(frozenset(tp.topic for tp in known))


def _is_alive(context: ControllerContext, request: AlterPartitionRequest) -> bool:
    broker = context.cluster.brokers.get(request.broker_id)
    return broker is not None and broker.epoch == request.broker_epoch


def _identify(
    context: ControllerContext,
    requests: Sequence[AlterPartitionRequest],
    results: dict[_Place, IsrChangeResult],
) -> list[_Change]:
    """The changes of partitions that are known; the others have their results. Where a request
    names a partition more than once, the last change counts."""
    leadership = context.cluster.leadership
    changes: list[_Change] = []
    for number, request in enumerate(requests):
        if not _is_alive(context, request):
            continue
        last = {(wanted.topic, wanted.partition): i for i, wanted in enumerate(request.changes)}
        for i, wanted in enumerate(request.changes):
            place = _Place(number, i)
            if last[wanted.topic, wanted.partition] != i:
                # No leader asks so, and each would take a round trip of its own.
                results[place] = _refused(wanted, INVALID_REQUEST)
                continue
            topic = _name_of(context, wanted.topic)
            if topic is None:
                results[place] = _refused(wanted, UNKNOWN_TOPIC_ID)
                continue
            tp = TopicPartition(topic, wanted.partition)
            if context.cluster.assignment(tp) is None or tp not in leadership:
                results[place] = _refused(wanted, UNKNOWN_TOPIC_OR_PARTITION)
            else:
                changes.append(_Change(place, tp, request.broker_id, wanted))
    return changes


def _name_of(context: ControllerContext, topic: str | uuid.UUID) -> str | None:
    return topic if isinstance(topic, str) else context.cluster.topic_name(topic)


def _rounds(changes: Iterable[_Change]) -> list[list[_Change]]:
    """Changes in groups in which no partition comes twice, in their order.

    It comes twice when a broker repeats a request whose answer was lost.
    """
    rounds: list[list[_Change]] = []
    seen: dict[TopicPartition, int] = {}
    for change in changes:
        number = seen.get(change.tp, -1) + 1
        seen[change.tp] = number
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(change)
    return rounds


async def _make(
    active: ActiveController, changes: Sequence[_Change], results: dict[_Place, IsrChangeResult]
) -> list[TopicPartition]:
    """Decide and write changes of different partitions. Returns those whose state is another now
    than was announced."""
    context = active.context
    leadership = context.cluster.leadership
    states: dict[TopicPartition, LeaderAndIsr] = {}
    for place, tp, sender, wanted in changes:
        current = leadership[tp]
        decision = decide(wanted, tp=tp, sender=sender, current=current, context=context)
        if isinstance(decision, int):
            results[place] = _refused(wanted, decision)
        elif decision is current:
            results[place] = _made(wanted, current)
        else:
            states[tp] = decision
    if not states:
        return []
    outcome = await write_partition_states(context, states)
    context.cluster.set_leadership(outcome.written, ChangeKind.ISR_REQUESTED)
    # Somebody else has written: what is stored counts from now on.
    read_again = await refresh_leadership(context, outcome.conflicts, active.log)
    report(active, [_sender(change) for change in changes if change.tp in outcome.conflicts])
    _note_failures(active, outcome.failures)
    for change in changes:
        place, tp, _, wanted = change
        if tp in outcome.written:
            results[place] = _made(wanted, outcome.written[tp])
        elif tp in outcome.failures:
            results[place] = _refused(wanted, UNKNOWN_SERVER_ERROR)
        elif tp in states:
            results[place] = _by_what_is_stored(context, change)
    return [*outcome.written, *read_again]


async def _settle_ahead(
    active: ActiveController, changes: Iterable[_Change], results: dict[_Place, IsrChangeResult]
) -> list[TopicPartition]:
    """Decide anew about changes whose senders are ahead of us. Returns the partitions whose state
    is another one in ZooKeeper."""
    ahead = [change for change in changes if results[change.place].error_code == NOT_CONTROLLER]
    if not ahead:
        return []
    read_again = await read_what_is_stored(active, [_sender(change) for change in ahead])
    for change in ahead:
        results[change.place] = _by_what_is_stored(active.context, change)
    return read_again


def _sender(change: _Change) -> SenderAhead:
    return SenderAhead(change.tp, change.sender, change.wanted)


def _left_waiting(
    context: ControllerContext,
    changes: Iterable[_Change],
    results: Mapping[_Place, IsrChangeResult],
) -> Iterator[tuple[TopicPartition, KnownEpochs]]:
    """Partitions whose leader was refused, and needs higher epochs than its own to go on."""
    for place, tp, sender, wanted in changes:
        current = context.cluster.leadership.get(tp)
        if current is not None and is_left_waiting(
            results[place].error_code, wanted, sender=sender, current=current
        ):
            yield tp, wanted.known_epochs


def _answered(
    context: ControllerContext, changes: Iterable[_Change]
) -> Iterator[tuple[TopicPartition, AnsweredLeader]]:
    """Leaders who lose something if their answer is overtaken by a higher leader epoch."""
    for _, tp, sender, wanted in changes:
        current = context.cluster.leadership.get(tp)
        if current is None:
            continue
        answer = answer_to(context, wanted, sender=sender, current=current)
        if answer is not None:
            yield tp, answer


def _by_what_is_stored(context: ControllerContext, change: _Change) -> IsrChangeResult:
    """What is stored is another state than the change was based on, and may well be the wanted one:
    a write that has taken effect is repeated if its answer is lost. It was read while we were the
    controller, so nobody else knows a later one."""
    current = context.cluster.leadership.get(change.tp)
    if current is not None:
        decision = decide(
            change.wanted, tp=change.tp, sender=change.sender, current=current, context=context
        )
        if decision is current:
            return _made(change.wanted, current)
        if isinstance(decision, int) and decision != NOT_CONTROLLER:
            return _refused(change.wanted, decision)
    return _refused(change.wanted, INVALID_UPDATE_VERSION)


def _note_failures(active: ActiveController, failures: Mapping[TopicPartition, str]) -> None:
    """One entry for all partitions of a write."""
    if failures:
        active.log.error(
            ISR_CHANGES_NOT_WRITTEN,
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )


def _refused(wanted: IsrChange, error_code: int) -> IsrChangeResult:
    return IsrChangeResult(wanted.topic, wanted.partition, error_code)


def _made(wanted: IsrChange, state: LeaderAndIsr) -> IsrChangeResult:
    return IsrChangeResult(wanted.topic, wanted.partition, NONE, state)
