"""What follows from elections that found no leader: a log line, and sometimes another attempt."""

from __future__ import annotations

from collections.abc import Iterable

from regent.controller.state.context import ControllerContext
from regent.controller.transitions.election import ElectionStrategy, OfflineElection
from regent.model.log import StructuredLog, examples
from regent.model.partition import TopicPartition

Failures = dict[TopicPartition, str]
"""Partition -> why its transition did not take place."""


class NoCandidate(str):
    """Reason of a failed election: no replica is eligible.

    That changes only when a broker with a replica returns or the configuration does, so before that
    there is no point in another attempt.
    """

    __slots__ = ()


def note_outcome(
    context: ControllerContext,
    log: StructuredLog,
    partitions: Iterable[TopicPartition],
    failures: Failures,
    strategy: ElectionStrategy,
) -> None:
    """Log failed elections, and note those that are worth repeating: of partitions that are left
    without a leader. Others keep the one that they have.

    An election is repeated with the offline strategy, so only that one can say that there is no
    point in it: another strategy may find no leader where this one would.
    """
    to_repeat = context.elections_to_repeat
    if to_repeat:
        is_decisive = isinstance(strategy, OfflineElection)
        for tp in partitions:
            if is_decisive or tp not in failures:
                to_repeat.pop(tp, None)
    if not failures:
        return
    without_leader = context.partitions_without_leader
    leaderless = {tp: why for tp, why in failures.items() if tp in without_leader}
    to_repeat.update(
        (tp, None) for tp, why in leaderless.items() if not isinstance(why, NoCandidate)
    )
    if leaderless:
        log.error("No leader elected", **_described(leaderless))
    if len(leaderless) < len(failures):
        unmoved = {tp: why for tp, why in failures.items() if tp not in without_leader}
        log.warning("Leaders not moved", **_described(unmoved))


def _described(failures: Failures) -> dict[str, object]:
    return {
        "partitions": len(failures),
        "examples": examples(f"{tp}: {reason}" for tp, reason in failures.items()),
    }
