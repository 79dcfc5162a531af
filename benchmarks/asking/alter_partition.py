"""AlterPartition, version 3: what leaders at inter.broker.protocol.version 3.5 and newer ask."""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.asking.connection import Request
from benchmarks.errors import BenchmarkError
from benchmarks.stub.answers import read_uvarint, uvarint

API_KEY = 56
VERSION = 3

_SENDER = struct.Struct(">iq")
_MEMBER = struct.Struct(">iqx")  # tagged fields
_PARTITION = struct.Struct(">ii")
_REST = struct.Struct(">bix")  # recovered, partition epoch, tagged fields
_HEAD = struct.Struct(">ih")
_RESULT = struct.Struct(">ihii")
_TOPIC_ID_SIZE = 16

Key = tuple[bytes, int]
"""The id of a topic and the number of a partition."""


class IsrChange(NamedTuple):
    """An ISR that a leader wants, on condition of both epochs."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class IsrResult(NamedTuple):
    """What has become of it."""

    error: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


def encode(
    broker_id: int, changes: Mapping[Key, IsrChange], broker_epochs: Mapping[int, int]
) -> Request:
    """The request of one leader for all its changes."""
    by_topic: dict[bytes, list[bytes]] = {}
    for (topic_id, index), change in changes.items():
        members = [_MEMBER.pack(member, broker_epochs[member]) for member in change.isr]
        by_topic.setdefault(topic_id, []).append(
            b"".join(
                (
                    _PARTITION.pack(index, change.leader_epoch),
                    uvarint(len(members) + 1),
                    *members,
                    _REST.pack(0, change.partition_epoch),
                )
            )
        )
    parts = [_SENDER.pack(broker_id, broker_epochs[broker_id]), uvarint(len(by_topic) + 1)]
    for topic_id, partitions in by_topic.items():
        parts += [topic_id, uvarint(len(partitions) + 1), *partitions, b"\0"]
    return Request(API_KEY, VERSION, b"".join((*parts, b"\0")))


def decode(body: bytes) -> dict[Key, IsrResult]:
    """The answer, to its last byte.

    Raises:
        BenchmarkError: it is an error as a whole, or has a partition twice, or bytes left over.
    """
    _throttled_ms, error = _HEAD.unpack_from(body)
    if error:
        raise BenchmarkError(f"AlterPartition was answered with error {error}")
    topics, offset = read_uvarint(body, _HEAD.size)
    results: dict[Key, IsrResult] = {}
    named = 0
    for _ in range(topics - 1):
        topic_id = body[offset : offset + _TOPIC_ID_SIZE]
        count, offset = read_uvarint(body, offset + _TOPIC_ID_SIZE)
        named += count - 1
        for _ in range(count - 1):
            index, error, leader, leader_epoch = _RESULT.unpack_from(body, offset)
            length, offset = read_uvarint(body, offset + _RESULT.size)
            isr = struct.unpack_from(f">{length - 1}i", body, offset)
            recovery_state, partition_epoch = _REST.unpack_from(body, offset + 4 * (length - 1))
            offset += 4 * (length - 1) + _REST.size
            if recovery_state or body[offset - 1]:
                raise BenchmarkError("a partition recovers, or has tagged fields")
            results[topic_id, index] = IsrResult(error, leader, leader_epoch, isr, partition_epoch)
        offset += 1
    if named != len(results) or offset + 1 != len(body):
        raise BenchmarkError("the answer to AlterPartition names a partition twice, or goes on")
    return results


def require_made(
    leader: int, changes: Mapping[Key, IsrChange], results: Mapping[Key, IsrResult]
) -> None:
    """Each change was made, in a write of its own.

    Raises:
        BenchmarkError: one was refused, or is not what was asked for.
    """
    if changes.keys() != results.keys():
        raise BenchmarkError(f"{len(changes)} ISR changes have {len(results)} results")
    for key, change in changes.items():
        made = IsrResult(0, leader, change.leader_epoch, change.isr, change.partition_epoch + 1)
        if results[key] != made:
            raise BenchmarkError(f"{change} was answered with {results[key]}")
