"""What a standby has of the cluster when it takes over."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from regent.controller.state.cluster_state import ClusterState
from regent.model.errors import MalformedZNodeError


class StandbyCopy(NamedTuple):
    """The topics, as ZooKeeper has them. Nobody else has it: whoever gets it may keep its parts.

    It has every transaction that ZooKeeper had answered or reported on this session when the copy
    was asked for.

    Attributes:
        cluster: Topics, assignments and leadership.
        topic_nodes: Names of all topic nodes, also those that could not be decoded.
        malformed_states: Of partitions of ``cluster``, those that have no leadership in it.
    """

    cluster: ClusterState
    topic_nodes: AbstractSet[str]
    malformed_states: tuple[MalformedZNodeError, ...]
