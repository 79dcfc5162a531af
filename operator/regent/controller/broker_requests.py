"""What brokers ask of the controller, and its answers, as values.

Bytes and versions of Kafka's protocol are no matter of the core: where versions differ in meaning,
the value says so. An answer is always one for the whole request.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import msgspec

from regent.model.partition import KnownEpochs, LeaderAndIsr

T = TypeVar("T", covariant=True)

UNKNOWN_BROKER_EPOCH: Final = -1
"""Epoch of an ISR member of which its leader knows none: then it is not checked (KIP-903)."""

_NO_EPOCHS: Final[Mapping[int, int]] = MappingProxyType({})


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """A request, and who waits for its answer.

    Attributes:
        request: What is asked.
        reply_to: The token by which the driver finds who waits.
    """

    request: T
    reply_to: Any


class IsrChange(msgspec.Struct, frozen=True):
    """The ISR that a leader wants for one of its partitions.

    Attributes:
        topic: Its id from version 2 of AlterPartition on, before its name.
        leader_epoch: That under which the sender leads.
        isr: Broker ids, in the order in which they are to be stored.
        partition_epoch: The state on which the change is based.
        leader_recovery_state: The wanted one (KIP-704).
        broker_epochs: Epochs of ISR members as the leader knows them; a member without an entry is
            not checked (KIP-903, version 3).
    """

    topic: str | uuid.UUID
    partition: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    leader_recovery_state: int = 0
    broker_epochs: Mapping[int, int] = _NO_EPOCHS

    @property
    def known_epochs(self) -> KnownEpochs:
        """What the sender knows of the partition."""
        return KnownEpochs(self.leader_epoch, self.partition_epoch)


class AlterPartitionRequest(msgspec.Struct, frozen=True):
    """A leader at inter.broker.protocol.version 2.7-IV2 or newer changes ISRs (KIP-497).

    Attributes:
        broker_id: The sender.
        broker_epoch: Which life of it.
    """

    broker_id: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]


class IsrChangeResult(msgspec.Struct, frozen=True):
    """What has become of one :class:`IsrChange`.

    Attributes:
        topic: As in the request.
        error_code: Kafka's; 0 if ``state`` is what was wanted.
        state: The state of the partition, if ``error_code`` is 0.
    """

    topic: str | uuid.UUID
    partition: int
    error_code: int
    state: LeaderAndIsr | None = None


class AlterPartitionResponse(msgspec.Struct, frozen=True):
    """Either a top-level error and no results, or a result for each change, in their order."""

    error_code: int
    results: tuple[IsrChangeResult, ...] = ()


class AllocateProducerIdsRequest(msgspec.Struct, frozen=True):
    """A broker needs producer ids (KIP-730)."""

    broker_id: int
    broker_epoch: int


class AllocateProducerIdsResponse(msgspec.Struct, frozen=True):
    """A block of ids that nobody else gets.

    Attributes:
        first_id: The first one; -1 with an error.
        size: How many; 0 with an error.
    """

    error_code: int
    first_id: int = -1
    size: int = 0
