"""Leaders whose ISR changes were answered lately, and which answers may have been overtaken.

What that means to a leader is said in :mod:`regent.controller.partitions.overtaken_answers`. Time
passes in intervals that are longer than an answer is on its way. An answer is remembered for one
interval at least. If the leader epoch is higher by then than that of the change, with the same
leader, it may have been overtaken; the state that the partition has is watched for one interval
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from regent.model.partition import LeaderAndIsr, TopicPartition

ASK_SINCE: Final = (2, 7)
"""From this inter.broker.protocol.version on leaders ask the controller for ISR changes."""

KEEP_CHANGES_SINCE: Final = (3, 0)
"""From this version on a leader's next change waits for the answer to the last one."""


class AnsweredLeader(NamedTuple):
    """Who was answered, and the leader epoch of its change."""

    leader: int
    leader_epoch: int


class AnsweredLeaders:
    """What a controller knows of the answers of its term, and of those before.

    Attributes:
        is_timed: Whether the end of the present interval will be reported.
        is_first_interval: Whether answers of predecessors may be on their way. Nothing is known of
            them.
        begun_terms: Epochs of terms, this one among them, whose beginning has not been looked
            after. A note in ZooKeeper says so.
        noted: Partitions of which a note in ZooKeeper says so to successors, with the leader epoch
            in it.
    """

    def __init__(self) -> None:
        self.is_timed = False
        self.is_first_interval = True
        self.begun_terms: tuple[int, ...] = ()
        self.noted: dict[TopicPartition, int] = {}
        self._lately: dict[TopicPartition, AnsweredLeader] = {}
        self._before: dict[TopicPartition, AnsweredLeader] = {}
        self._watched: dict[TopicPartition, LeaderAndIsr] = {}

    def __bool__(self) -> bool:
        return bool(self._lately or self._before or self._watched)

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._lately or tp in self._before or tp in self._watched

    def add(self, answered: Mapping[TopicPartition, AnsweredLeader]) -> None:
        """Leaders are answered. An earlier answer has arrived: they have asked again since."""
        self._lately.update(answered)

    def watch(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> None:
        """An answer has been overtaken by these states, most likely."""
        self._watched.update(states)

    def on_its_way(self, tp: TopicPartition) -> AnsweredLeader | None:
        """To whom an answer may be on its way."""
        return self._lately.get(tp) or self._before.get(tp)

    def unchanged(
        self, leadership: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """What has been watched for an interval, and is as it was."""
        return {tp: state for tp, state in self._watched.items() if leadership.get(tp) == state}

    def next_interval(
        self,
        leadership: Mapping[TopicPartition, LeaderAndIsr],
        *,
        settled: Iterable[TopicPartition],
    ) -> None:
        """The interval is over.

        Args:
            settled: Partitions about which nothing is to be done any more, but for what was
                answered in this interval.
        """
        for tp in settled:
            self._before.pop(tp, None)
        self._watched = {
            tp: current
            for tp, answered in chain(self._before.items(), self._lately.items())
            if (current := leadership.get(tp)) is not None
            and current.leader == answered.leader
            and current.leader_epoch > answered.leader_epoch
        }
        self._before, self._lately = self._lately, {}
