"""Reading and writing partition states in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from regent.controller.state.answered_leaders import AnsweredLeader
from regent.controller.state.context import ControllerContext
from regent.controller.znodes import overtaken_answer_notes
from regent.model.errors import MalformedZNodeError, UnexpectedZooKeeperError
from regent.model.log import StructuredLog, report_malformed
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import ReadData, Write
from regent.zk_data.operations import Check, Operation, SetData, Written, ZkError, ZNode
from regent.zk_data.permitted_reads import NO_AUTH, read_permitted
from regent.zk_data.topics import partition_state_decoder, partition_state_encoder

MANY: Final = 10_000
"""Partitions whose states are worked on while others are on their way."""


class StatesRead(NamedTuple):
    """Result of :func:`read_partition_states`.

    Attributes:
        states: What decoded.
        missing: Partitions without a state znode.
        failures: Partition -> why it cannot be used.
        set_back: The states of those failures that could be read, and have a lower partition epoch
            than is known (:mod:`regent.controller.transitions.partition_epochs`).
        mzxids: Transaction that wrote each state that decoded, as it was read.
    """

    states: dict[TopicPartition, LeaderAndIsr]
    missing: list[TopicPartition]
    failures: dict[TopicPartition, str]
    set_back: dict[TopicPartition, LeaderAndIsr]
    mzxids: dict[TopicPartition, int]


async def read_partition_states(
    partitions: Sequence[TopicPartition], log: StructuredLog, *, watch: bool = False
) -> StatesRead:
    """Read the state znodes of partitions. Malformed ones are skipped.

    Those of one reading are one log entry, with their number and examples. Elections that are tried
    again at each watch check read, and log, them again.

    Those of a whole cluster are decoded while others are on their way.
    """
    state_paths = paths.partition_states(partitions)
    reading = _Reading(partitions)
    if watch or len(partitions) < MANY:
        reading.take(state_paths, await read_permitted(state_paths, watch=watch))
    else:
        try:
            await ReadData(state_paths, take=reading.take)
        except UnexpectedZooKeeperError as error:
            if error.code != NO_AUTH:
                raise
            reading = _Reading(partitions)
            reading.take(state_paths, await read_permitted(state_paths))
    report_malformed(
        log,
        "Malformed partition states skipped",
        [(found.path, found.reason) for found in reading.malformed],
    )
    return reading.read


class _Reading:
    """Decodes states as they come.

    Attributes:
        read: What has come.
        malformed: Why some could not be decoded.
    """

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.read = StatesRead({}, [], {}, {}, {})
        self.malformed: list[MalformedZNodeError] = []
        self._partitions = iter(partitions)
        self._decode = partition_state_decoder()

    def take(self, state_paths: Sequence[str], nodes: Sequence[ZNode | None]) -> None:
        """The nodes of the next partitions."""
        states, mzxids, decode = self.read.states, self.read.mzxids, self._decode
        for path, node, tp in zip(state_paths, nodes, self._partitions, strict=False):
            if node is None:
                self.read.missing.append(tp)
                continue
            try:
                states[tp] = decode(path, node)
                mzxids[tp] = node.mzxid
            except MalformedZNodeError as error:
                self.malformed.append(error)
                self.read.failures[tp] = f"its state znode is malformed: {error.reason}"


class StatesWritten(NamedTuple):
    """Result of :func:`write_partition_states`.

    Attributes:
        written: The states as stored, with their new partition epochs.
        conflicts: Partitions whose state changed since it was read, or was deleted: read again,
            decide again.
        failures: Partition -> why its state could not be written.
    """

    written: dict[TopicPartition, LeaderAndIsr]
    conflicts: list[TopicPartition]
    failures: dict[TopicPartition, str]


async def write_partition_states(
    context: ControllerContext, states: dict[TopicPartition, LeaderAndIsr]
) -> StatesWritten:
    """Replace state znodes, each on the condition that its dataVersion is still the one in
    ``partition_epoch``."""
    await _expect_overtaken_answers(context, states)
    results = await Write(_replacements(states), guard=epoch_guard(context))
    written: dict[TopicPartition, LeaderAndIsr] = {}
    conflicts: list[TopicPartition] = []
    failures: dict[TopicPartition, str] = {}
    stored = _Stored()
    for (tp, state), result in zip(states.items(), results, strict=True):
        if isinstance(result, Written):
            written[tp] = stored.under(state, result.version)
        elif result in (ZkError.BAD_VERSION, ZkError.NO_NODE):
            conflicts.append(tp)
        else:
            failures[tp] = f"ZooKeeper answered {result.value} for its state znode"
    return StatesWritten(written, conflicts, failures)


async def write_on_known_states(
    context: ControllerContext, states: Mapping[TopicPartition, LeaderAndIsr]
) -> dict[TopicPartition, LeaderAndIsr]:
    """Replace state znodes that the context may know, which saves reading them.

    Whatever follows from a state that is out of date is refused by ZooKeeper for its dataVersion.
    The caller reads and decides again what is not in the result, for whatever reason. Neighbours of
    a partition that conflicts are among that: where leaders have changed ISRs by the thousand, this
    costs some transactions in vain, and not one for each.

    Returns:
        What was written, as stored.
    """
    if not states:
        return {}
    await _expect_overtaken_answers(context, states)
    results = await Write(_replacements(states), guard=epoch_guard(context), divides=False)
    stored = _Stored()
    return {
        tp: stored.under(state, result.version)
        for (tp, state), result in zip(states.items(), results, strict=True)
        if isinstance(result, Written)
    }


async def _expect_overtaken_answers(
    context: ControllerContext, states: Mapping[TopicPartition, LeaderAndIsr]
) -> None:
    """Leader epochs that are about to be raised may overtake answers to leaders: see
    :mod:`regent.controller.partitions.overtaken_answers`.

    Of what has been answered successors are to know before. What predecessors have answered is not
    known, and may be on its way in the first seconds of a term: leaders that stay are looked after.
    """
    answered = context.answered_leaders
    if answered:
        overtaken = {
            tp: answer.leader_epoch
            for tp, state in states.items()
            if (answer := answered.on_its_way(tp)) is not None
            and answer.leader == state.leader
            and answer.leader_epoch < state.leader_epoch
        }
        await overtaken_answer_notes.remember(context, overtaken, guard=epoch_guard(context))
    if answered.is_first_interval:
        leadership = context.cluster.leadership
        answered.add(
            {
                tp: AnsweredLeader(before.leader, before.leader_epoch)
                for tp, state in states.items()
                if (before := leadership.get(tp)) is not None
                and before.leader == state.leader
                and before.leader_epoch < state.leader_epoch
                and answered.on_its_way(tp) is None
            }
        )


def _replacements(states: Mapping[TopicPartition, LeaderAndIsr]) -> list[Operation]:
    """A state that many partitions share is encoded once."""
    encode = partition_state_encoder()
    return [
        SetData(path, encode(state), state.partition_epoch)
        for path, state in zip(paths.partition_states(states), states.values(), strict=True)
    ]


class _Stored:
    """States as they are stored. Who share a state before share it afterwards."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[LeaderAndIsr, LeaderAndIsr]] = {}

    def under(self, state: LeaderAndIsr, partition_epoch: int) -> LeaderAndIsr:
        """:func:`with_partition_epoch`."""
        key = (id(state), partition_epoch)
        known = self._known.get(key)
        if known is None:  # the former is kept for its id
            known = self._known[key] = (state, with_partition_epoch(state, partition_epoch))
        return known[1]


def known_states(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, LeaderAndIsr]:
    """The states of partitions as the context has them."""
    leadership = context.cluster.leadership
    return {tp: leadership[tp] for tp in partitions if tp in leadership}


def with_partition_epoch(state: LeaderAndIsr, partition_epoch: int) -> LeaderAndIsr:
    """The same leadership under another dataVersion."""
    return LeaderAndIsr(
        state.leader,
        state.leader_epoch,
        state.isr,
        state.controller_epoch,
        partition_epoch,
        state.leader_recovery_state,
    )


def epoch_guard(context: ControllerContext) -> Check:
    """The fence of every write: ``/controller_epoch`` as it was when we were elected."""
    return Check(paths.CONTROLLER_EPOCH, context.term.epoch_zk_version)
