"""Changes of leadership that are no elections: a new leader epoch, a smaller ISR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from regent.controller.log import ControllerLog
from regent.controller.state.causes import ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import (
    read_partition_states,
    write_partition_states,
)
from regent.model.partition import LeaderAndIsr, TopicPartition


class LeaderAndMembers(NamedTuple):
    """What a decision changes of a partition's leadership.

    Attributes:
        kind: How the change is recorded in the state-change trail.
    """

    leader: int
    isr: tuple[int, ...]
    kind: ChangeKind = ChangeKind.WRITTEN


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
    log: ControllerLog,
) -> LeadershipChanged:
    """Write what ``decide`` makes of the present states, each under a new leader epoch.

    A leader that changes its ISR at the same moment wins: its state is read and decided again.
    Nobody is informed.
    """
    epoch = context.term.epoch
    result = LeadershipChanged({}, {})
    remaining: Sequence[TopicPartition] = partitions
    while remaining:
        read = await read_partition_states(remaining, log)
        result.failures.update(read.failures)
        result.failures.update(dict.fromkeys(read.missing, "its state znode does not exist"))
        states: dict[TopicPartition, LeaderAndIsr] = {}
        kinds: dict[TopicPartition, ChangeKind] = {}
        unchanged: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, state in read.states.items():
            if state.controller_epoch > epoch:
                result.failures[tp] = f"its state has controller epoch {state.controller_epoch}"
                continue
            decision = decide(tp, state)
            if isinstance(decision, str):
                result.failures[tp] = decision
                continue
            if decision is None:
                unchanged[tp] = state
                continue
            kinds[tp] = decision.kind
            states[tp] = LeaderAndIsr(
                decision.leader,
                state.leader_epoch + 1,
                decision.isr,
                epoch,
                state.partition_epoch,
                state.leader_recovery_state,
            )
        result.written.update(_observe(context, unchanged))
        outcome = await write_partition_states(context, states)
        for kind in dict.fromkeys(kinds[tp] for tp in outcome.written):
            written = {tp: state for tp, state in outcome.written.items() if kinds[tp] is kind}
            context.cluster.set_leadership(written, kind, based_on=read.states)
        result.written.update(outcome.written)
        result.failures.update(outcome.failures)
        remaining = outcome.conflicts
    return result


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
