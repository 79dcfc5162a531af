"""Partitions whose topic's node somebody removed from ZooKeeper: brokers still have their replicas.

Nobody stops those, since nobody knows whether their records are wanted. So a broker goes by the
epochs of the former topic when another one of that name is created: it takes no LeaderAndIsr with a
leader epoch that is not higher than it knows, and its answer does not say so.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

from regent.model.partition import LeaderAndIsr, TopicPartition

MAX_VANISHED: Final = 50_000
"""Some 10 MB. The oldest ones are forgotten first."""


class VanishedPartitions:
    """The last known states of the partitions that vanished last, whichever our term was.

    Args:
        limit: How many are kept.
    """

    def __init__(self, *, limit: int = MAX_VANISHED) -> None:
        self._limit = limit
        self._states: OrderedDict[TopicPartition, LeaderAndIsr] = OrderedDict()

    def add(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> None:
        """The nodes of topics were removed by somebody else."""
        for tp, state in states.items():
            self._states[tp] = state
            self._states.move_to_end(tp)
        while len(self._states) > self._limit:
            self._states.popitem(last=False)

    def get(self, tp: TopicPartition) -> LeaderAndIsr | None:
        """The last known state of the former partition of that name; None: there was none."""
        return self._states.get(tp)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """There are partitions of these names again."""
        for tp in partitions:
            self._states.pop(tp, None)
