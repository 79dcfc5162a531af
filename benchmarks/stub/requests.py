"""Reads control requests completely, once the clock has stopped.

A decoder of its own, so that what a controller has sent is not judged by that controller's code;
it is checked against the declared entities of the messages on one request of each kind.
"""

import struct
from typing import Any, NamedTuple

from kio.serial import entity_reader

from benchmarks.errors import BenchmarkError
from benchmarks.stub.answers import (
    KRAFT_FLAG_SINCE,
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    Header,
    read_uvarint,
)
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_REQUEST
from regent.protocol.entities.stop_replica import STOP_REPLICA_REQUEST
from regent.protocol.entities.update_metadata import UPDATE_METADATA_REQUEST

_FENCE = struct.Struct(">iiq")
_FENCE_WITH_KRAFT_FLAG = struct.Struct(">ixiq")
_HEAD = struct.Struct(">iiii")
_INT32 = struct.Struct(">i")

_STOPPED = struct.Struct(">ii??")

_VERSIONS = {LEADER_AND_ISR: (4,), STOP_REPLICA: (3,), UPDATE_METADATA: (6, 8)}
_TOPIC_ID_SINCE = 7  # in UpdateMetadata
_TOPIC_ID_SIZE = 16

Replicas = tuple[int, ...]


class PartitionState(NamedTuple):
    """A partition as a request describes it."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: Replicas
    partition_epoch: int
    replicas: Replicas


class Remark(NamedTuple):
    """What a request says of a partition besides, if it says anything.

    Attributes:
        adding: Replicas that are being added, in LeaderAndIsr.
        removing: Replicas that are being removed, in LeaderAndIsr.
        is_new: Whether the broker is to create the replica, in LeaderAndIsr.
        offline: Replicas that are offline, in UpdateMetadata.
    """

    adding: Replicas = ()
    removing: Replicas = ()
    is_new: bool = False
    offline: Replicas = ()


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


class Stopped(NamedTuple):
    """A replica of StopReplica."""

    leader_epoch: int
    delete: bool


PartitionId = tuple[str, int]


class ControlRequest(NamedTuple):
    """A request of any kind, with what all have.

    Attributes:
        partitions: Of LeaderAndIsr and UpdateMetadata.
        brokers: Live leaders of LeaderAndIsr, live brokers of UpdateMetadata, with the address of
            their first listener.
        remarks: Of those partitions that have any.
        stopped: Of StopReplica.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: dict[PartitionId, PartitionState]
    brokers: dict[int, Address | None]
    remarks: dict[PartitionId, Remark]
    stopped: dict[PartitionId, Stopped]


def fence(frame: bytes | bytearray, header: Header) -> tuple[int, int, int]:
    """Controller id, controller epoch and broker epoch of a request."""
    controller_id, controller_epoch, broker_epoch = _fence_of(header).unpack_from(frame, header.end)
    return controller_id, controller_epoch, broker_epoch


def fence_end(header: Header) -> int:
    """The offset behind what `fence` reads."""
    return header.end + _fence_of(header).size


def _fence_of(header: Header) -> struct.Struct:
    has_flag = header.version >= KRAFT_FLAG_SINCE[header.api_key]
    return _FENCE_WITH_KRAFT_FLAG if has_flag else _FENCE


class RequestReader:
    """Decodes requests. Knows LeaderAndIsr 4, StopReplica 3, UpdateMetadata 6 and 8."""

    def __init__(self) -> None:
        self._arrays: dict[bytes, Replicas] = {}

    def read(self, frame: bytes | bytearray, header: Header) -> ControlRequest:
        """Decode a request to its last byte.

        Raises:
            BenchmarkError: it is of another version, or has bytes left over.
        """
        if header.version not in _VERSIONS.get(header.api_key, ()):
            raise BenchmarkError(f"version {header.version} of API {header.api_key} is not known")
        if header.api_key == STOP_REPLICA:
            return _stop_replica(bytes(frame), header)
        is_leader_and_isr = header.api_key == LEADER_AND_ISR
        read_remark = self._leader_and_isr_remark if is_leader_and_isr else self._offline_remark
        data = bytes(frame)
        has_topic_ids = not is_leader_and_isr and header.version >= _TOPIC_ID_SINCE
        topics, offset = read_uvarint(data, fence_end(header))
        partitions: dict[PartitionId, PartitionState] = {}
        remarks: dict[PartitionId, Remark] = {}
        named = 0
        for _ in range(topics - 1):
            topic, offset = _string(data, offset)
            offset += _TOPIC_ID_SIZE * has_topic_ids
            count, offset = read_uvarint(data, offset)
            named += count - 1
            for _ in range(count - 1):
                index, state, offset = self._partition(data, offset)
                partitions[topic, index] = state
                remark, offset = read_remark(data, offset)
                if remark is not None:
                    remarks[topic, index] = remark
            offset += 1
        if named != len(partitions):
            raise BenchmarkError("a request names a partition twice")
        brokers, offset = _brokers(data, offset, is_leader_and_isr=is_leader_and_isr)
        _require_end(data, offset)
        return ControlRequest(*fence(frame, header), partitions, brokers, remarks, {})

    def _partition(self, data: bytes, offset: int) -> tuple[int, PartitionState, int]:
        index, controller_epoch, leader, leader_epoch = _HEAD.unpack_from(data, offset)
        isr, offset = self._array(data, offset + _HEAD.size)
        (partition_epoch,) = _INT32.unpack_from(data, offset)
        replicas, offset = self._array(data, offset + 4)
        state = PartitionState(
            controller_epoch, leader, leader_epoch, isr, partition_epoch, replicas
        )
        return index, state, offset

    def _leader_and_isr_remark(self, data: bytes, offset: int) -> tuple[Remark | None, int]:
        if data[offset : offset + 4] == b"\1\1\0\0":
            return None, offset + 4
        adding, offset = self._array(data, offset)
        removing, offset = self._array(data, offset)
        return Remark(adding, removing, is_new=bool(data[offset])), offset + 2

    def _offline_remark(self, data: bytes, offset: int) -> tuple[Remark | None, int]:
        if data[offset : offset + 2] == b"\1\0":
            return None, offset + 2
        offline, offset = self._array(data, offset)
        return Remark(offline=offline), offset + 1

    def _array(self, data: bytes, offset: int) -> tuple[Replicas, int]:
        length, start = read_uvarint(data, offset)
        end = start + 4 * (length - 1)
        raw = data[start:end]
        values = self._arrays.get(raw)
        if values is None:
            values = self._arrays[raw] = struct.unpack(f">{length - 1}i", raw)
        return values, end


def _stop_replica(data: bytes, header: Header) -> ControlRequest:
    topics, offset = read_uvarint(data, fence_end(header))
    stopped: dict[PartitionId, Stopped] = {}
    named = 0
    for _ in range(topics - 1):
        topic, offset = _string(data, offset)
        count, offset = read_uvarint(data, offset)
        named += count - 1
        for _ in range(count - 1):
            index, leader_epoch, delete, has_tags = _STOPPED.unpack_from(data, offset)
            if has_tags:
                raise BenchmarkError("a partition of StopReplica has tagged fields")
            stopped[topic, index] = Stopped(leader_epoch, delete)
            offset += _STOPPED.size
        offset += 1
    if named != len(stopped):
        raise BenchmarkError("a request names a partition twice")
    _require_end(data, offset)
    return ControlRequest(*fence(data, header), {}, {}, {}, stopped)


def _brokers(
    data: bytes, offset: int, *, is_leader_and_isr: bool
) -> tuple[dict[int, Address | None], int]:
    read_broker = _live_leader if is_leader_and_isr else _live_broker
    count, offset = read_uvarint(data, offset)
    brokers: dict[int, Address | None] = {}
    for _ in range(count - 1):
        broker_id, address, offset = read_broker(data, offset)
        brokers[broker_id] = address
    return brokers, offset


def _require_end(data: bytes, offset: int) -> None:
    """Only empty tagged fields may follow."""
    if offset + 1 != len(data) or data[offset]:
        raise BenchmarkError(f"a request has {len(data) - offset - 1} bytes left over")


def reference_reading(frame: bytes | bytearray, header: Header) -> ControlRequest:
    """The same by the declared entities, which is slow."""
    if header.api_key == STOP_REPLICA:
        return _reference_stop_replica(frame, header)
    is_leader_and_isr = header.api_key == LEADER_AND_ISR
    message = LEADER_AND_ISR_REQUEST if is_leader_and_isr else UPDATE_METADATA_REQUEST
    request: Any
    request, _ = entity_reader(message[header.version])(bytes(frame[header.end :]), 0)
    epoch_of_partition = "partition_epoch" if is_leader_and_isr else "zk_version"
    brokers = request.live_leaders if is_leader_and_isr else request.live_brokers
    named = {
        (topic.topic_name, partition.partition_index): partition
        for topic in request.topic_states
        for partition in topic.partition_states
    }
    remarks = {
        named_id: Remark(
            tuple(partition.adding_replicas), tuple(partition.removing_replicas), partition.is_new
        )
        if is_leader_and_isr
        else Remark(offline=tuple(partition.offline_replicas))
        for named_id, partition in named.items()
    }
    return ControlRequest(
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        {
            named_id: PartitionState(
                partition.controller_epoch,
                partition.leader,
                partition.leader_epoch,
                tuple(partition.isr),
                getattr(partition, epoch_of_partition),
                tuple(partition.replicas),
            )
            for named_id, partition in named.items()
        },
        dict(map(_leader_address if is_leader_and_isr else _broker_address, brokers)),
        {named_id: remark for named_id, remark in remarks.items() if remark != Remark()},
        {},
    )


def _reference_stop_replica(frame: bytes | bytearray, header: Header) -> ControlRequest:
    request: Any
    message = STOP_REPLICA_REQUEST[header.version]
    request, _ = entity_reader(message)(bytes(frame[header.end :]), 0)
    stopped = {
        (topic.topic_name, partition.partition_index): Stopped(
            partition.leader_epoch, partition.delete_partition
        )
        for topic in request.topic_states
        for partition in topic.partition_states
    }
    return ControlRequest(
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        {},
        {},
        {},
        stopped,
    )


def _leader_address(leader: Any) -> tuple[int, Address]:
    return leader.broker_id, Address(leader.host_name, leader.port)


def _broker_address(broker: Any) -> tuple[int, Address | None]:
    first = next(iter(broker.endpoints), None)
    return broker.id_, None if first is None else Address(first.host, first.port)


def _string(data: bytes, offset: int) -> tuple[str, int]:
    length, offset = read_uvarint(data, offset)
    end = offset + max(length - 1, 0)  # null is read as empty
    return data[offset:end].decode(), end


def _live_leader(data: bytes, offset: int) -> tuple[int, Address, int]:
    (broker_id,) = _INT32.unpack_from(data, offset)
    host, offset = _string(data, offset + 4)
    (port,) = _INT32.unpack_from(data, offset)
    return broker_id, Address(host, port), offset + 5  # tagged fields


def _live_broker(data: bytes, offset: int) -> tuple[int, Address | None, int]:
    (broker_id,) = _INT32.unpack_from(data, offset)
    endpoints, offset = read_uvarint(data, offset + 4)
    first: Address | None = None
    for _ in range(endpoints - 1):
        (port,) = _INT32.unpack_from(data, offset)
        host, offset = _string(data, offset + 4)
        first = first or Address(host, port)
        _, offset = _string(data, offset)
        offset += 3  # security protocol, tagged fields
    _, offset = _string(data, offset)
    return broker_id, first, offset + 1
