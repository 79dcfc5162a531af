"""Changes of leadership that are no elections: a new leader epoch, a smaller ISR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from regent.controller.log import ControllerLog
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import (
    read_partition_states,
    write_partition_states,
)
from regent.model.partition import LeaderAndIsr, TopicPartition


class LeaderAndMembers(NamedTuple):
    """What a decision changes of a partition's leadership."""

    leader: int
    isr: tuple[int, ...]


Decision = LeaderAndMembers | str
"""The new leader and ISR, or why the partition stays as it is."""


class LeadershipChanged(NamedTuple):
    """Result of :func:`change_leadership`.

    Attributes:
        written: The new states.
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
        for tp, state in read.states.items():
            if state.controller_epoch > epoch:
                result.failures[tp] = f"its state has controller epoch {state.controller_epoch}"
                continue
            decision = decide(tp, state)
            if isinstance(decision, str):
                result.failures[tp] = decision
                continue
            states[tp] = LeaderAndIsr(
                decision.leader,
                state.leader_epoch + 1,
                decision.isr,
                epoch,
                state.partition_epoch,
                state.leader_recovery_state,
            )
        outcome = await write_partition_states(context, states)
        context.cluster.set_leadership(outcome.written, based_on=read.states)
        result.written.update(outcome.written)
        result.failures.update(outcome.failures)
        remaining = outcome.conflicts
    return result
