"""Partition epochs: within a term that of a partition never goes down.

A partition epoch is the dataVersion of the state's znode. Who deletes the znode and creates it
again, as tools that copy znodes do, has it begin at 0, whatever brokers know. A broker of Kafka 3.3
or later takes no LeaderAndIsr with a lower one than it knows, answers without an error, and neither
leads nor follows until it is restarted (KAFKA-13790). So a state with a lower partition epoch than
is known is written as it is, until that is exceeded, before anybody acts on it. It is exceeded by
so much that no leader that changes ISRs in ZooKeeper itself, and is ahead of what is known, knows
the version that comes of it: its next change would overwrite whatever is decided by then.

A topic that was deleted and created again is another topic: its partition epochs do begin at 0,
unless it was only removed from ZooKeeper, and brokers have its replicas still
(:mod:`regent.controller.state.vanished_partitions`).

Source: ``Partition.makeLeader``, ``Partition.makeFollower``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from regent.controller.state.context import ControllerContext
from regent.controller.transitions.missing_states import (
    leaders_write_isrs,
    restore_missing,
    topics_as_known,
)
from regent.controller.transitions.partition_state_znodes import (
    StatesRead,
    epoch_guard,
    read_partition_states,
    with_partition_epoch,
)
from regent.model.log import StructuredLog, examples
from regent.model.partition import NO_LEADER, KnownEpochs, LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import SetData, WriteResult, Written, ZkError
from regent.zk_data.topics import encode_partition_state

WRITES_MAX: Final = 10_000
"""How often the state of a partition is written for its partition epoch."""

_AT_ONCE: Final = 500
"""Writes of one call: as a rule one transaction, and one round trip, in which other events wait."""

_LEADERS_AHEAD: Final = 5
"""By so many ISR changes leaders may be ahead of what is known: below inter.broker.protocol.version
2.7 they write them themselves, and report them some seconds later, at worst a minute."""

_HAS_CHANGED: Final = frozenset({ZkError.BAD_VERSION, ZkError.NO_NODE})

SET_BACK: Final = (
    "States of partitions were created again, at lower versions than brokers know; written until "
    "theirs were exceeded"
)
NOT_WRITABLE: Final = (
    "States of partitions were created again, at lower versions than brokers know, and cannot be "
    "written: left alone until they can"
)
LEFT_BEHIND: Final = (
    "States of partitions were created again, at versions too far below those that brokers know: "
    "brokers that host these partitions neither lead nor follow until they are restarted"
)


class Reached(NamedTuple):
    """Result of :func:`reach_partition_epochs`.

    Attributes:
        written: States under the partition epochs that they were to have.
        conflicts: Partitions whose state somebody else has changed.
        failures: Partition -> why its state could not be written.
    """

    written: dict[TopicPartition, LeaderAndIsr]
    conflicts: list[TopicPartition]
    failures: dict[TopicPartition, str]


async def reach_partition_epochs(
    context: ControllerContext,
    states: Mapping[TopicPartition, LeaderAndIsr],
    wanted: Mapping[TopicPartition, int],
) -> Reached:
    """Write states as they are until they have the partition epochs that are wanted of them.

    Each write is on condition of the version that the one before leaves: what somebody else writes
    meanwhile is not overwritten.
    """
    result = Reached({}, [], {})
    behind = {tp: state for tp, state in states.items() if state.partition_epoch < wanted[tp]}
    while behind:
        counts = _next_counts(behind, wanted)
        operations = [
            operation
            for tp, count in counts.items()
            for operation in _repeated(tp, behind[tp], count)
        ]
        answers = iter(await Write(operations, guard=epoch_guard(context), divides=False))
        for tp, count in counts.items():
            answered = list(islice(answers, count))
            written = sum(isinstance(answer, Written) for answer in answered)
            state = behind.pop(tp)
            state = with_partition_epoch(state, state.partition_epoch + written)
            why = _refusal(answered)
            if why in _HAS_CHANGED:
                result.conflicts.append(tp)
            elif why is not None:
                result.failures[tp] = f"ZooKeeper answered {why.value} for its state znode"
            elif state.partition_epoch < wanted[tp]:
                behind[tp] = state
            else:
                result.written[tp] = state
    return result


async def exceed_former_epochs(
    context: ControllerContext,
    states: Mapping[TopicPartition, LeaderAndIsr],
    former: Mapping[TopicPartition, LeaderAndIsr],
    log: StructuredLog,
) -> Reached:
    """Have first states exceed the partition epochs of former partitions of the same names. Those
    that are too far behind are left as they are, and logged."""
    wanted = {tp: former[tp].partition_epoch + _LEADERS_AHEAD for tp in states}
    near = _within_reach(states, wanted)
    _report(
        log.error,
        LEFT_BEHIND,
        {tp: f"{tp}: version {former[tp].partition_epoch}" for tp in states if tp not in near},
    )
    reached = await reach_partition_epochs(context, near, wanted)
    return reached._replace(written={**states, **reached.written})


def _within_reach(
    states: Mapping[TopicPartition, LeaderAndIsr], wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, LeaderAndIsr]:
    """The states that may be written as often as is wanted."""
    return {
        tp: state
        for tp, state in states.items()
        if wanted[tp] - state.partition_epoch <= WRITES_MAX
    }


def _refusal(answered: Sequence[WriteResult]) -> ZkError | None:
    """Why a state was not written. None: it was, or was rolled back with another partition's, and
    is written again; then what follows in other transactions misses its version."""
    refused = [each for each in answered if isinstance(each, ZkError)]
    if ZkError.ROLLED_BACK in refused[:1]:
        refused = [
            each for each in refused if each not in (ZkError.ROLLED_BACK, ZkError.BAD_VERSION)
        ]
    return refused[0] if refused else None


def _next_counts(
    behind: Mapping[TopicPartition, LeaderAndIsr], wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """How often the states of which partitions are written at once."""
    counts: dict[TopicPartition, int] = {}
    room = _AT_ONCE
    for tp, state in behind.items():
        counts[tp] = min(wanted[tp] - state.partition_epoch, room)
        room -= counts[tp]
        if not room:
            break
    return counts


def _repeated(tp: TopicPartition, state: LeaderAndIsr, count: int) -> Iterator[SetData]:
    path, data = paths.partition_state(tp), encode_partition_state(state)
    for version in range(state.partition_epoch, state.partition_epoch + count):
        yield SetData(path, data, version)


async def read_states_again(
    context: ControllerContext,
    partitions: Sequence[TopicPartition],
    log: StructuredLog,
    *,
    watch: bool = False,
    have_changed: bool = False,
) -> StatesRead:
    """:func:`read_partition_states` of partitions of which states may be known. None that is read
    has a lower partition epoch than is known: those that had have been written until they exceed
    it, and what leaders may know, and are among the failures if that cannot be done. One that
    somebody has deleted is created again (:mod:`regent.controller.transitions.missing_states`).

    The exceptions are states of other topics of the same name, those that a later controller has
    written, and those that are too far behind.

    Args:
        have_changed: Whether leaders have reported that they have changed the states.
    """
    read = await read_partition_states(partitions, log, watch=watch)
    restored: frozenset[TopicPartition] = frozenset()
    if read.missing:
        restored = await restore_missing(context, read, log, watch=watch, have_changed=have_changed)
    behind = await _set_back(context, read.states, restored)
    if behind:
        await _catch_up(context, read, behind, log, watch=watch)
    return read


async def _set_back(
    context: ControllerContext,
    states: Mapping[TopicPartition, LeaderAndIsr],
    begun_again: Collection[TopicPartition],
) -> dict[TopicPartition, LeaderAndIsr]:
    """States with lower partition epochs than the context knows of the same partition; of those
    that are known to have begun again, than a leader may know."""
    known, epoch = context.cluster.leadership.get, context.term.epoch
    behind = {
        tp: state
        for tp, state in states.items()
        if (before := known(tp)) is not None
        and state.partition_epoch
        < before.partition_epoch + (_LEADERS_AHEAD if tp in begun_again else 0)
        and state.controller_epoch <= epoch
    }
    if not behind:
        return behind
    # Of a node that may not be read nobody knows, and a higher version does no harm.
    same = await topics_as_known(context, behind)
    return {tp: state for tp, state in behind.items() if tp.topic in same}


async def _catch_up(
    context: ControllerContext,
    read: StatesRead,
    behind: dict[TopicPartition, LeaderAndIsr],
    log: StructuredLog,
    *,
    watch: bool,
) -> None:
    """Have states exceed the known partition epochs, and say so. ``read`` is corrected."""
    known = context.cluster.leadership
    written: dict[TopicPartition, str] = {}
    unwritable: dict[TopicPartition, str] = {}
    left: dict[TopicPartition, str] = {}
    while behind:
        found = {
            tp: f"{tp}: version {known[tp].partition_epoch} was known, "
            f"{state.partition_epoch} was found"
            for tp, state in behind.items()
        }
        wanted = {tp: known[tp].partition_epoch + _LEADERS_AHEAD for tp in behind}
        near = _within_reach(behind, wanted)
        left |= {tp: found[tp] for tp in behind if tp not in near}
        reached = await reach_partition_epochs(context, near, wanted)
        read.states.update(reached.written)
        _expect_leaders_to_wait(context, reached.written)
        written |= {tp: found[tp] for tp in reached.written}
        for tp, why in reached.failures.items():
            read.set_back[tp] = read.states.pop(tp)
            read.failures[tp] = unwritable[tp] = f"{found[tp]}; {why}"
        behind = await _read_conflicts(context, read, reached.conflicts, log, watch=watch)
    _report(log.warning, SET_BACK, written)
    _report(log.error, NOT_WRITABLE, unwritable)
    _report(log.error, LEFT_BEHIND, left)


def _expect_leaders_to_wait(context: ControllerContext, written: Iterable[TopicPartition]) -> None:
    """A leader that writes ISRs itself knows another version, and can change nothing before it is
    sent a higher leader epoch. It asks nobody: it gets one with the next watch check, unless one is
    written before."""
    if leaders_write_isrs(context):
        known = context.cluster.leadership
        context.waiting_leaders.update(
            {
                tp: KnownEpochs(known[tp].leader_epoch, known[tp].partition_epoch)
                for tp in written
                if known[tp].leader != NO_LEADER
            }
        )


async def _read_conflicts(
    context: ControllerContext,
    read: StatesRead,
    conflicts: Sequence[TopicPartition],
    log: StructuredLog,
    *,
    watch: bool,
) -> dict[TopicPartition, LeaderAndIsr]:
    """Correct ``read`` by what somebody else has written. Returns what is behind all the same."""
    if not conflicts:
        return {}
    again = await read_partition_states(conflicts, log, watch=watch)
    for tp in conflicts:
        del read.states[tp]
    read.states.update(again.states)
    read.missing.extend(again.missing)
    read.failures.update(again.failures)
    return await _set_back(context, again.states, conflicts)


def _report(
    say: Callable[..., None], message: str, partitions: Mapping[TopicPartition, str]
) -> None:
    if partitions:
        say(message, partitions=len(partitions), examples=examples(partitions.values()))
