"""Reads control requests completely, once the clock has stopped: LeaderAndIsr, UpdateMetadata.

A decoder of its own, so that what a controller has sent is not judged by that controller's code;
it is checked against the declared entities of the messages on one request of each kind.
"""

import struct
from typing import Any, NamedTuple

from kio.serial import entity_reader

from benchmarks.errors import BenchmarkError
from benchmarks.stub.answers import LEADER_AND_ISR, UPDATE_METADATA, Header, read_uvarint
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_REQUEST
from regent.protocol.entities.update_metadata import UPDATE_METADATA_REQUEST

_FENCE = struct.Struct(">iiq")
_HEAD = struct.Struct(">iiii")
_INT32 = struct.Struct(">i")

_VERSIONS = {LEADER_AND_ISR: 4, UPDATE_METADATA: 6}

Replicas = tuple[int, ...]


class PartitionState(NamedTuple):
    """A partition as a request describes it."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: Replicas
    partition_epoch: int
    replicas: Replicas


class ControlRequest(NamedTuple):
    """A request of either kind, with what both have."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: dict[tuple[str, int], PartitionState]
    broker_ids: frozenset[int]


def fence(frame: bytes | bytearray, header: Header) -> tuple[int, int, int]:
    """Controller id, controller epoch and broker epoch of a request."""
    controller_id, controller_epoch, broker_epoch = _FENCE.unpack_from(frame, header.end)
    return controller_id, controller_epoch, broker_epoch


class RequestReader:
    """Decodes requests. Knows LeaderAndIsr version 4 and UpdateMetadata version 6."""

    def __init__(self) -> None:
        self._arrays: dict[bytes, Replicas] = {}

    def read(self, frame: bytes | bytearray, header: Header) -> ControlRequest:
        """Decode a request to its last byte.

        Raises:
            BenchmarkError: it is of another version, or has bytes left over.
        """
        if _VERSIONS.get(header.api_key) != header.version:
            raise BenchmarkError(f"version {header.version} of API {header.api_key} is not known")
        is_leader_and_isr = header.api_key == LEADER_AND_ISR
        offset = header.end + _FENCE.size
        data = bytes(frame)
        topics, offset = read_uvarint(data, offset)
        partitions: dict[tuple[str, int], PartitionState] = {}
        named = 0
        for _ in range(topics - 1):
            topic, offset = _string(data, offset)
            count, offset = read_uvarint(data, offset)
            named += count - 1
            for _ in range(count - 1):
                index, state, offset = self._partition(data, offset)
                partitions[topic, index] = state
                offset = self._rest_of_partition(data, offset, is_leader_and_isr=is_leader_and_isr)
            offset += 1
        if named != len(partitions):
            raise BenchmarkError("a request names a partition twice")
        read_broker = _live_leader if is_leader_and_isr else _live_broker
        brokers, offset = read_uvarint(data, offset)
        broker_ids = set()
        for _ in range(brokers - 1):
            broker_id, offset = read_broker(data, offset)
            broker_ids.add(broker_id)
        if offset + 1 != len(data) or data[offset]:
            raise BenchmarkError(f"a request has {len(data) - offset - 1} bytes left over")
        return ControlRequest(*fence(frame, header), partitions, frozenset(broker_ids))

    def _partition(self, data: bytes, offset: int) -> tuple[int, PartitionState, int]:
        index, controller_epoch, leader, leader_epoch = _HEAD.unpack_from(data, offset)
        isr, offset = self._array(data, offset + _HEAD.size)
        (partition_epoch,) = _INT32.unpack_from(data, offset)
        replicas, offset = self._array(data, offset + 4)
        state = PartitionState(
            controller_epoch, leader, leader_epoch, isr, partition_epoch, replicas
        )
        return index, state, offset

    def _rest_of_partition(self, data: bytes, offset: int, *, is_leader_and_isr: bool) -> int:
        """No replica is being added or removed, is new or is offline."""
        expected = b"\1\1\0\0" if is_leader_and_isr else b"\1\0"
        end = offset + len(expected)
        if data[offset:end] != expected:
            raise BenchmarkError("a partition is new, or is being reassigned, or is offline")
        return end

    def _array(self, data: bytes, offset: int) -> tuple[Replicas, int]:
        length, start = read_uvarint(data, offset)
        end = start + 4 * (length - 1)
        raw = data[start:end]
        values = self._arrays.get(raw)
        if values is None:
            values = self._arrays[raw] = struct.unpack(f">{length - 1}i", raw)
        return values, end


def reference_reading(frame: bytes | bytearray, header: Header) -> ControlRequest:
    """The same by the declared entities, which is slow."""
    is_leader_and_isr = header.api_key == LEADER_AND_ISR
    message = LEADER_AND_ISR_REQUEST if is_leader_and_isr else UPDATE_METADATA_REQUEST
    request: Any
    request, _ = entity_reader(message[header.version])(bytes(frame[header.end :]), 0)
    epoch_of_partition = "partition_epoch" if is_leader_and_isr else "zk_version"
    brokers = request.live_leaders if is_leader_and_isr else request.live_brokers
    return ControlRequest(
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        {
            (topic.topic_name, partition.partition_index): PartitionState(
                partition.controller_epoch,
                partition.leader,
                partition.leader_epoch,
                tuple(partition.isr),
                getattr(partition, epoch_of_partition),
                tuple(partition.replicas),
            )
            for topic in request.topic_states
            for partition in topic.partition_states
        },
        frozenset(b.broker_id if is_leader_and_isr else b.id_ for b in brokers),
    )


def _string(data: bytes, offset: int) -> tuple[str, int]:
    length, offset = read_uvarint(data, offset)
    end = offset + max(length - 1, 0)  # null is read as empty
    return data[offset:end].decode(), end


def _live_leader(data: bytes, offset: int) -> tuple[int, int]:
    (broker_id,) = _INT32.unpack_from(data, offset)
    _, offset = _string(data, offset + 4)
    return broker_id, offset + 5  # port, tagged fields


def _live_broker(data: bytes, offset: int) -> tuple[int, int]:
    (broker_id,) = _INT32.unpack_from(data, offset)
    endpoints, offset = read_uvarint(data, offset + 4)
    for _ in range(endpoints - 1):
        _, offset = _string(data, offset + 4)  # port, host
        _, offset = _string(data, offset)
        offset += 3  # security protocol, tagged fields
    _, offset = _string(data, offset)
    return broker_id, offset + 1
