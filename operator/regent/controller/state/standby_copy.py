"""What a standby has of the cluster when it takes over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from regent.controller.state.cluster_state import ClusterState
from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition

NOT_TAKEN: Final = -2
"""mzxid of a topic node that is not, or not wholly, in a copy. No node has it."""


class StandbyCopy(NamedTuple):
    """The topics, as ZooKeeper has them. Nobody else has it: whoever gets it may keep its parts.

    It has every transaction that ZooKeeper had answered or reported on this session when the copy
    was asked for.

    Attributes:
        cluster: Topics, assignments and leadership, and of some partitions, or all, what brokers
            are to be sent.
        topic_mzxids: Transaction that wrote each topic node as it was read; :data:`NOT_TAKEN` of
            those that could not be decoded.
        state_mzxids: Transaction that wrote the state of each partition that has leadership.
        malformed_states: Of partitions of ``cluster``, those that have no leadership in it.
    """

    cluster: ClusterState
    topic_mzxids: Mapping[str, int]
    state_mzxids: Mapping[TopicPartition, int]
    malformed_states: tuple[MalformedZNodeError, ...]
