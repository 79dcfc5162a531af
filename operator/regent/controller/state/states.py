"""States of partitions and replicas and the transitions that are legal: tables, nothing else.

Source: ``PartitionStateMachine.scala`` and ``ReplicaStateMachine.scala``. The diagrams in
DESIGN.md are drawn from these tables.
"""

from __future__ import annotations

import enum
from typing import Final


class PartitionState(enum.Enum):
    """State of a partition; the values are those of Kafka's ``PartitionState.state``."""

    NEW = 0
    """Known, but it never had a leader: its state znode does not exist."""
    ONLINE = 1
    """It has a leader."""
    OFFLINE = 2
    """Its leader is gone and no successor has been elected."""
    NON_EXISTENT = 3
    """Never created, or deleted."""


PARTITION_PREVIOUS_STATES: Final[dict[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.OFFLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}
"""Target state -> states from which it may be entered."""


class ReplicaState(enum.Enum):
    """State of a replica; the values are those of Kafka's ``ReplicaState.state``."""

    NEW = 1
    """Being created: it can only become a follower."""
    ONLINE = 2
    """Started, on a live broker: leader or follower."""
    OFFLINE = 3
    """Its broker is down, or it is being stopped."""
    DELETION_STARTED = 4
    """StopReplica with deletion was sent."""
    DELETION_SUCCESSFUL = 5
    """The broker has deleted it."""
    DELETION_INELIGIBLE = 6
    """It cannot be deleted now: its broker is down or the deletion failed."""
    NON_EXISTENT = 7
    """Deleted and forgotten, or never known."""


REPLICA_PREVIOUS_STATES: Final[dict[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: frozenset(
        {
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.OFFLINE: frozenset(
        {
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset(
        {ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}
    ),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
"""Target state -> states from which it may be entered."""
