"""Requests to brokers as bytes, and their answers as values: one place for all kinds."""

from __future__ import annotations

from typing import Final

from regent.protocol import describe_log_dirs, leader_and_isr, stop_replica, update_metadata
from regent.protocol.control_requests import (
    ControlRequest,
    ControlResponse,
    DescribeLogDirsRequest,
    LeaderAndIsrRequest,
    PartitionUpdates,
    UpdateMetadataRequest,
)
from regent.protocol.framing import Part

ENCODED_AT_ONCE: Final = 100_000
"""Partitions of a request that are encoded in one step: some 50 ms."""

WORTH_ENCODING_AHEAD: Final = 1_000
"""Partitions that take a millisecond to encode, and more. What waits may still be
merged, which is work done in vain, and small updates often are."""

Body = tuple[Part, ...]
"""A request body in parts that are sent one after the other: large ones are shared by receivers, or
made while they are sent."""


def api_key_of(request: ControlRequest) -> int:
    """Kafka's number of the kind of request."""
    match request:
        case LeaderAndIsrRequest():
            return leader_and_isr.API_KEY
        case UpdateMetadataRequest():
            return update_metadata.API_KEY
        case DescribeLogDirsRequest():
            return describe_log_dirs.API_KEY
    return stop_replica.API_KEY


def partitions_in(request: ControlRequest) -> int:
    """How many partitions a request names."""
    if isinstance(request, UpdateMetadataRequest):
        return len(request.updates.partitions)
    if isinstance(request, DescribeLogDirsRequest):
        return 0
    return len(request.partitions)


def is_slow_to_encode(request: ControlRequest, version: int) -> bool:
    """Whether encoding the request takes so long that others must not wait for it."""
    if partitions_in(request) <= ENCODED_AT_ONCE:
        return False
    collected = isinstance(request, LeaderAndIsrRequest) and leader_and_isr.is_collected(
        request, version
    )
    return not collected


def is_flexible(request: ControlRequest, version: int) -> bool:
    """Whether that version of the request has the flexible encoding (KIP-482)."""
    match request:
        case LeaderAndIsrRequest():
            return leader_and_isr.is_flexible(version)
        case UpdateMetadataRequest():
            return update_metadata.is_flexible(version)
        case DescribeLogDirsRequest():
            return False
    return stop_replica.is_flexible(version)


def encode_ahead(updates: PartitionUpdates, version: int) -> None:
    """Encode what an UpdateMetadata of that version will say of partitions, which keeps it, if that
    takes a while and no longer than others can wait."""
    if WORTH_ENCODING_AHEAD <= len(updates.partitions) <= ENCODED_AT_ONCE:
        update_metadata.encoded_partitions(updates, version)


def encode_body(request: ControlRequest, *, version: int, listener: str | None = None) -> Body:
    """The body of a request.

    Args:
        listener: Name of the listener under which LeaderAndIsr gives the live leaders.

    Raises:
        KeyError: If a partition has no state.
    """
    match request:
        case LeaderAndIsrRequest():
            return leader_and_isr.encode_leader_and_isr(request, version=version, listener=listener)
        case UpdateMetadataRequest():
            return update_metadata.encode_update_metadata(request, version=version)
        case DescribeLogDirsRequest():
            return (describe_log_dirs.encode_describe_log_dirs(request),)
    return (stop_replica.encode_stop_replica(request, version=version),)


def decode_response_body(request: ControlRequest, body: bytes, *, version: int) -> ControlResponse:
    """The answer to a request, with the epochs that the request carried.

    Raises:
        DecodeError: If the body is malformed.
    """
    match request:
        case LeaderAndIsrRequest():
            return leader_and_isr.decode_leader_and_isr_response(request, body, version=version)
        case UpdateMetadataRequest():
            return update_metadata.decode_update_metadata_response(request, body, version=version)
        case DescribeLogDirsRequest():
            return describe_log_dirs.decode_describe_log_dirs_response(request, body)
    return stop_replica.decode_stop_replica_response(request, body, version=version)
