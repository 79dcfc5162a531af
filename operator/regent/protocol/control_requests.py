"""The controller's requests to brokers, as values: LeaderAndIsr, UpdateMetadata and StopReplica,
and the question which log directories are offline.

A :class:`ControlRequests` is one sealed batch of the controller: it says *which* partitions concern
which broker. What one broker is sent of it, merged with what waits for it already, is one of these
requests; how that becomes bytes, in which version, is decided per connection when it is sent.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from regent.model.cluster import Broker
from regent.model.partition import NO_EPOCH, TopicPartition
from regent.protocol.collected_entries import NOTHING_COLLECTED, CollectedEntries
from regent.protocol.partition_state import PartitionState


class StopReplicaPartition(NamedTuple):
    """Stop one replica.

    Attributes:
        leader_epoch: Current leader epoch, or -1 / -2: the broker skips its check (KIP-570).
        delete: Whether the broker also deletes the replica's log.
    """

    leader_epoch: int
    delete: bool


class ControlRequests(msgspec.Struct, frozen=True):
    """One batch. A broker receives its LeaderAndIsr, UpdateMetadata, StopReplica, in this order.

    Attributes:
        controller_id: Id under which the controller holds ``/controller``.
        controller_epoch: Its epoch.
        brokers: Every live or shutting-down broker by id: the broker list of UpdateMetadata (which
            replaces the one that the receiver has), the live leaders of LeaderAndIsr, and the
            receivers' broker epochs.
        topic_ids: Ids of the topics concerned; a topic without an entry has none.
        partitions: Partitions of the UpdateMetadata, the same for every receiver, and their state;
            those of every LeaderAndIsr are among them. Fastest where the partitions of one topic
            are adjacent. May be empty: then it carries only the broker list.
        offline_replicas: Replicas on dead brokers or failed log dirs, for partitions that have any.
        leader_and_isr: Receiver -> partition -> whether the replica is new on that broker.
            Likewise fastest.
        entries: Receiver -> entries of its LeaderAndIsr, by topics of which all partitions are in
            it. As far as they were collected beforehand: they are in ``partitions``, too.
        update_metadata_receivers: Brokers that get an UpdateMetadata.
        deleted_partitions: Of the announced ones those that are sent with leader -2.
        stop_replica: Receiver -> partition -> what to do with its replica.
        announced: The controller itself as a live broker of UpdateMetadata; None: it is not one.
        describe_log_dirs: Brokers that are asked for their log directories, after all else.
        list_replicas: Brokers that are asked for the replicas in them, too.
    """

    controller_id: int
    controller_epoch: int
    brokers: Mapping[int, Broker]
    topic_ids: Mapping[str, uuid.UUID]
    partitions: Mapping[TopicPartition, PartitionState]
    offline_replicas: Mapping[TopicPartition, tuple[int, ...]]
    leader_and_isr: Mapping[int, Mapping[TopicPartition, bool]]
    update_metadata_receivers: tuple[int, ...]
    deleted_partitions: frozenset[TopicPartition]
    stop_replica: Mapping[int, Mapping[TopicPartition, StopReplicaPartition]]
    entries: Mapping[int, CollectedEntries] = MappingProxyType({})
    announced: Broker | None = None
    describe_log_dirs: tuple[int, ...] = ()
    list_replicas: tuple[int, ...] = ()


class ControlHeader(NamedTuple):
    """What every request to a broker begins with.

    Attributes:
        controller_id: As in :class:`ControlRequests`.
        controller_epoch: Likewise.
        broker_id: The receiver.
        broker_epoch: Epoch of its registration: another life of it refuses the request (KIP-380).
    """

    controller_id: int
    controller_epoch: int
    broker_id: int
    broker_epoch: int


class BrokerList(msgspec.Struct, frozen=True, eq=False):
    """The live brokers as UpdateMetadata lists them. One value serves all receivers.

    Attributes:
        brokers: By id.
        announced: As in :class:`ControlRequests`.
        encoded: Bytes by version, filled in by the encoder.
    """

    brokers: Mapping[int, Broker]
    announced: Broker | None = None
    encoded: dict[int, bytes] = msgspec.field(default_factory=dict)


class PartitionUpdates(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The partitions of an UpdateMetadata. One value serves all receivers.

    Attributes:
        partitions: State of each; of a deleted one the state that it had.
        deleted: Those that are sent with leader -2: brokers forget them. Others may be in it.
        offline_replicas: As in :class:`ControlRequests`; likewise.
        topic_ids: Likewise.
        encoded: Bytes by version, filled in by the encoder.
    """

    partitions: Mapping[TopicPartition, PartitionState]
    deleted: Collection[TopicPartition] = frozenset()
    offline_replicas: Mapping[TopicPartition, tuple[int, ...]] = MappingProxyType({})
    topic_ids: Mapping[str, uuid.UUID] = MappingProxyType({})
    encoded: dict[int, bytes] = msgspec.field(default_factory=dict)


NO_PARTITIONS: Final = PartitionUpdates({})
"""Of an UpdateMetadata that only carries the list of brokers."""


class LeaderAndIsrRequest(msgspec.Struct, frozen=True):
    """Become leader or follower of partitions.

    Attributes:
        partitions: Partition -> whether the replica is new on that broker.
        states: State of each; others may be in it.
        topic_ids: As in :class:`ControlRequests`.
        brokers: The live brokers, of which the request lists those that lead a partition in it.
        entries: As in :class:`ControlRequests`, of this broker.
    """

    header: ControlHeader
    partitions: Mapping[TopicPartition, bool]
    states: Mapping[TopicPartition, PartitionState]
    topic_ids: Mapping[str, uuid.UUID]
    brokers: Mapping[int, Broker]
    entries: CollectedEntries = NOTHING_COLLECTED


class UpdateMetadataRequest(msgspec.Struct, frozen=True):
    """The brokers that are alive, and partitions as clients are to see them."""

    header: ControlHeader
    brokers: BrokerList
    updates: PartitionUpdates


class StopReplicaRequest(msgspec.Struct, frozen=True):
    """Stop replicas, or delete them: either all of them or none (versions 0 to 2 have one flag)."""

    header: ControlHeader
    partitions: Mapping[TopicPartition, StopReplicaPartition]


class DescribeLogDirsRequest(msgspec.Struct, frozen=True):
    """Say which log directories are offline. The header is not sent: it marks the answer.

    Attributes:
        lists_replicas: Whether to say which replicas are in the others.
    """

    header: ControlHeader
    lists_replicas: bool = False


ControlRequest = (
    LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest | DescribeLogDirsRequest
)


class LeaderAndIsrResponse(msgspec.Struct, frozen=True):
    """A broker's answer.

    Attributes:
        error_code: Top-level error, 0 for none.
        partition_errors: Error codes of partitions, as far as anything follows from them
            (``leader_and_isr.NOTHING_FOLLOWS``).
        partitions: All partitions that the request named: those without an entry in
            ``partition_errors`` were accepted, or known already (if ``error_code`` is 0).
        controller_epoch: Controller epoch of the request; -1 if not known.
        broker_epoch: Broker epoch of the request; -1 if not known. With the controller epoch it
            marks an answer that belongs to a former channel.
        topic_ids: Of the request: what is said of a topic holds under this id.
    """

    broker_id: int
    error_code: int
    partition_errors: Mapping[TopicPartition, int]
    partitions: Mapping[TopicPartition, bool]
    controller_epoch: int = NO_EPOCH
    broker_epoch: int = NO_EPOCH
    topic_ids: Mapping[str, uuid.UUID] = MappingProxyType({})


class UpdateMetadataResponse(msgspec.Struct, frozen=True):
    """A broker's answer: the top-level error, 0 for none; epochs as in the other answers."""

    broker_id: int
    error_code: int
    controller_epoch: int = NO_EPOCH
    broker_epoch: int = NO_EPOCH


class StopReplicaResponse(msgspec.Struct, frozen=True):
    """A broker's answer.

    Attributes:
        error_code: Top-level error, 0 for none.
        partition_errors: Partitions with a non-zero error code.
        partitions: What the request asked for.
        controller_epoch: As in :class:`LeaderAndIsrResponse`.
        broker_epoch: As in :class:`LeaderAndIsrResponse`.
    """

    broker_id: int
    error_code: int
    partition_errors: Mapping[TopicPartition, int]
    partitions: Mapping[TopicPartition, StopReplicaPartition]
    controller_epoch: int = NO_EPOCH
    broker_epoch: int = NO_EPOCH


class DescribeLogDirsResponse(msgspec.Struct, frozen=True):
    """A broker's answer.

    Attributes:
        error_code: Why the broker does not say anything, 0 if it does.
        log_dirs: Error code by path of the directory; 0: it is online.
        controller_epoch: As in :class:`LeaderAndIsrResponse`.
        broker_epoch: As in :class:`LeaderAndIsrResponse`.
        replicas: Bytes by topic and partition, of all online directories; None: not asked for, or
            not said. Copies on their way to another directory are left out.
    """

    broker_id: int
    error_code: int
    log_dirs: Mapping[str, int]
    controller_epoch: int = NO_EPOCH
    broker_epoch: int = NO_EPOCH
    replicas: Mapping[str, Mapping[int, int]] | None = None


ControlResponse = (
    LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse | DescribeLogDirsResponse
)
