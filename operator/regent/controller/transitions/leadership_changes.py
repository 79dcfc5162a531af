"""Changes of leadership that are no elections: a new leader epoch, a smaller ISR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from regent.controller.state.causes import ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_epochs import read_states_again
from regent.controller.transitions.partition_state_znodes import (
    known_states,
    write_on_known_states,
    write_partition_states,
)
from regent.model.log import StructuredLog
from regent.model.partition import NO_EPOCH, LeaderAndIsr, TopicPartition


class LeaderAndMembers(NamedTuple):
    """What a decision changes of a partition's leadership.

    Attributes:
        kind: How the change is recorded in the state-change trail.
        above: The new leader epoch is higher than this one, too.
    """

    leader: int
    isr: tuple[int, ...]
    kind: ChangeKind = ChangeKind.WRITTEN
    above: int = NO_EPOCH


Decision = LeaderAndMembers | str | None
"""The new leader and ISR, or why the partition stays as it is; None: nothing is to be changed."""


class LeadershipChanged(NamedTuple):
    """Result of :func:`change_leadership`.

    Attributes:
        written: The new states. Among them are our own writes whose answer was lost: no broker was
            sent them.
        failures: Partition -> why its state stays.
    """

    written: dict[TopicPartition, LeaderAndIsr]
    failures: dict[TopicPartition, str]


async def change_leadership(
    context: ControllerContext,
    partitions: Sequence[TopicPartition],
    decide: Callable[[TopicPartition, LeaderAndIsr], Decision],
    log: StructuredLog,
    *,
    known: Mapping[TopicPartition, LeaderAndIsr] | None = None,
) -> LeadershipChanged:
    """Write what ``decide`` makes of the present states, each under a new leader epoch.

    A change is tried on the state that is known. Where that is out of date, and where nothing is
    to be changed, the state is read and decided again: a leader that changes its ISR at the same
    moment wins. Nobody is informed.

    Args:
        known: :func:`known_states` of the partitions, for who has them.
    """
    if known is None:
        known = known_states(context, partitions)
    tried = _decided(context, known, decide, are_known=True)
    result = LeadershipChanged(await write_on_known_states(context, tried.states), {})
    _take_over(context, result.written, tried)
    remaining: Sequence[TopicPartition] = [tp for tp in partitions if tp not in result.written]
    while remaining:
        read = await read_states_again(context, remaining, log)
        result.failures.update(read.failures)
        result.failures.update(dict.fromkeys(read.missing, "its state znode does not exist"))
        decided = _decided(context, read.states, decide)
        result.failures.update(decided.failures)
        result.written.update(_observe(context, decided.unchanged))
        outcome = await write_partition_states(context, decided.states)
        _take_over(context, outcome.written, decided)
        result.written.update(outcome.written)
        result.failures.update(outcome.failures)
        remaining = outcome.conflicts
    return result


class _Decided(NamedTuple):
    """What is to become of partitions.

    Attributes:
        based_on: The states that this was decided by, if they were read for it.
        states: What is to be written.
        kinds: How each of that is recorded.
    """

    based_on: Mapping[TopicPartition, LeaderAndIsr]
    states: dict[TopicPartition, LeaderAndIsr]
    kinds: dict[TopicPartition, ChangeKind]
    unchanged: dict[TopicPartition, LeaderAndIsr]
    failures: dict[TopicPartition, str]


def _decided(
    context: ControllerContext,
    states: Mapping[TopicPartition, LeaderAndIsr],
    decide: Callable[[TopicPartition, LeaderAndIsr], Decision],
    *,
    are_known: bool = False,
) -> _Decided:
    """Partitions that share a state and a decision share the new state, too."""
    epoch = context.term.epoch
    result = _Decided({} if are_known else states, {}, {}, {}, {})
    made: dict[tuple[int, int], tuple[LeaderAndMembers, LeaderAndIsr]] = {}
    for tp, state in states.items():
        if state.controller_epoch > epoch:
            context.note_epoch_above(state.controller_epoch)
            result.failures[tp] = f"its state has controller epoch {state.controller_epoch}"
            continue
        decision = decide(tp, state)
        if isinstance(decision, str):
            result.failures[tp] = decision
        elif decision is None:
            result.unchanged[tp] = state
        else:
            key = (id(state), id(decision))
            known = made.get(key)
            if known is None:  # the decision is kept for its id
                known = made[key] = (decision, _changed(state, decision, epoch))
            result.kinds[tp] = decision.kind
            result.states[tp] = known[1]
    return result


def _changed(state: LeaderAndIsr, decision: LeaderAndMembers, epoch: int) -> LeaderAndIsr:
    return LeaderAndIsr(
        decision.leader,
        max(state.leader_epoch, decision.above) + 1,
        decision.isr,
        epoch,
        state.partition_epoch,
        state.leader_recovery_state,
    )


def _take_over(
    context: ControllerContext, written: Mapping[TopicPartition, LeaderAndIsr], decided: _Decided
) -> None:
    by_kind: dict[ChangeKind, dict[TopicPartition, LeaderAndIsr]] = {}
    for tp, state in written.items():
        by_kind.setdefault(decided.kinds[tp], {})[tp] = state
    for kind, changes in by_kind.items():
        context.cluster.set_leadership(changes, kind, based_on=decided.based_on)


def _observe(
    context: ControllerContext, states: dict[TopicPartition, LeaderAndIsr]
) -> dict[TopicPartition, LeaderAndIsr]:
    """Take over states that were read. Returns those with a leader epoch that is not known: our own
    writes, whose answers were lost."""
    known = context.cluster.leadership
    ours = {
        tp: state
        for tp, state in states.items()
        if tp not in known or state.leader_epoch > known[tp].leader_epoch
    }
    different = {tp: state for tp, state in states.items() if known.get(tp) != state}
    context.cluster.set_leadership(different, ChangeKind.OBSERVED)
    return ours
