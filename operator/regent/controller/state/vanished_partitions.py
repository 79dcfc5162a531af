"""Partitions whose topic's node somebody removed from ZooKeeper: brokers still have their replicas.

Nobody stops those, since nobody knows whether their records are wanted. So a broker goes by the
epochs of the former topic when another one of that name is created: it takes no LeaderAndIsr with a
leader epoch that is not higher than it knows, and its answer does not say so.
"""

from __future__ import annotations

from typing import Final

from regent.controller.state.last_partitions import LastPartitions
from regent.model.partition import LeaderAndIsr

MAX_VANISHED: Final = 50_000
"""Some 10 MB."""


class VanishedPartitions(LastPartitions[LeaderAndIsr]):
    """The last known states of the partitions that vanished last, whichever our term was."""

    def __init__(self, *, limit: int = MAX_VANISHED) -> None:
        super().__init__(limit=limit)
