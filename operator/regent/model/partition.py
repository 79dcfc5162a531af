"""Partitions: identity, replica assignment, leadership."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final, NamedTuple

import msgspec

NO_LEADER: Final = -1
"""Leader of a partition none of whose in-sync replicas is alive."""

LEADER_DURING_DELETE: Final = -2
"""Leader announced in UpdateMetadata while the topic is being deleted: brokers drop the entry."""

INITIAL_LEADER_EPOCH: Final = 0

EPOCH_DURING_DELETE: Final = -2
"""Leader epoch in StopReplica for a topic being deleted: brokers skip the epoch check (KIP-570)."""

NO_EPOCH: Final = -1
"""Leader epoch in StopReplica when none is known: brokers skip the epoch check (KIP-570)."""


class KnownEpochs(NamedTuple):
    """Epochs of a partition as its leader knows them.

    It takes a LeaderAndIsr with a higher leader epoch, unless the partition epoch is lower than its
    own: from Kafka 3.3 on it then takes none (KAFKA-13790).
    """

    leader_epoch: int
    partition_epoch: int = NO_EPOCH


class TopicPartition(NamedTuple):
    """A partition of a topic. A tuple, so that hashing and comparing happen in C."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def partitions_of_topic(topic: str, numbers: Iterable[int]) -> Iterator[TopicPartition]:
    """Partitions of one topic. Calling the class for each costs more than all else that is done
    with it."""
    return map(tuple.__new__, repeat(TopicPartition), zip(repeat(topic), numbers, strict=False))


class LeaderRecoveryState(enum.IntEnum):
    """Whether the leader is known to hold every committed record (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class LeaderAndIsr(msgspec.Struct, frozen=True, gc=False):
    """Leadership of a partition as its state znode holds it.

    One value for what Kafka nests as ``LeaderIsrAndControllerEpoch(LeaderAndIsr)``.

    Attributes:
        leader: Broker id, or :data:`NO_LEADER`.
        leader_epoch: Rises with every change that the controller makes.
        isr: In-sync replicas in the order in which they were stored: the order is significant.
        controller_epoch: Epoch of the controller that made the last change.
        partition_epoch: dataVersion of the state znode; "zkVersion" on older wires.
        leader_recovery_state: See :class:`LeaderRecoveryState`, as an int.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int
    leader_recovery_state: int = 0


class ReplicaAssignment(msgspec.Struct, frozen=True, gc=False):
    """Replicas of a partition, the preferred leader first, and a reassignment in progress, if any.

    Source: KIP-455. While reassigning, ``replicas`` is the target, then what is being removed.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """Replicas without the ones being removed."""
        return tuple(r for r in self.replicas if r not in self.removing_replicas)

    def remove_replica(self, replica: int) -> ReplicaAssignment:
        """The assignment without ``replica`` in any of its three lists."""
        return ReplicaAssignment(
            replicas=tuple(r for r in self.replicas if r != replica),
            adding_replicas=tuple(r for r in self.adding_replicas if r != replica),
            removing_replicas=tuple(r for r in self.removing_replicas if r != replica),
        )


class FoundPartition(NamedTuple):
    """State of a partition when its move was planned: the condition of the move.

    Attributes:
        czxid: Transaction that created the node of its topic, 0 if not known. It differs if the
            topic was deleted and created again.
    """

    czxid: int
    assignment: ReplicaAssignment
