"""UpdateMetadata: from a request to its body, and from a response body to its error.

Versions and their fields: ``entities/update_metadata.py``. Everything behind the receiver's broker
epoch is the same for all receivers and is encoded once. A partition of a topic that is being
deleted is sent as Kafka's ``LeaderAndIsr.duringDelete`` makes it: leader -2, leader epoch and
partition epoch 0, the rest kept.
"""

from __future__ import annotations

import struct
from itertools import repeat
from operator import add
from typing import Final

import msgspec

from regent.model.cluster import Broker
from regent.model.partition import INITIAL_LEADER_EPOCH, LEADER_DURING_DELETE
from regent.protocol.control_requests import (
    BrokerList,
    PartitionUpdates,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from regent.protocol.partition_state import PartitionState, prefixes_of
from regent.protocol.primitives import (
    FLEXIBLE,
    LEGACY,
    Encoding,
    Int32Arrays,
    pack_int16,
    pack_int32,
)
from regent.protocol.response_errors import expect_end, read_error_code
from regent.protocol.topic_sections import (
    by_topic,
    grouped_section,
    ungrouped_section,
)

API_KEY: Final = 6
VERSIONS: Final = range(4, 9)

_GROUPED_SINCE: Final = 5
_TOPIC_ID_SINCE: Final = 7
_KRAFT_FLAG_SINCE: Final = 8

_PARTITION_EPOCH_DURING_DELETE: Final = 0

_SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

_pack_epochs: Final = struct.Struct(">iq").pack


def is_flexible(version: int) -> bool:
    return version >= 6


def encode_update_metadata(request: UpdateMetadataRequest, *, version: int) -> tuple[bytes, ...]:
    """The request body in three parts: the receiver's own, the partitions, the brokers.

    Receivers share the last two as the same objects: with a hundred brokers, a copy for each would
    be half a gigabyte.
    """
    header = request.header
    own = pack_int32(header.controller_id)
    if version >= _KRAFT_FLAG_SINCE:
        own += b"\x00"
    if version >= _GROUPED_SINCE:
        own += _pack_epochs(header.controller_epoch, header.broker_epoch)
    else:
        own += pack_int32(header.controller_epoch)
    brokers = request.brokers
    partitions = encoded_partitions(request.updates, version)
    live = brokers.encoded.get(version)
    if live is None:
        live = brokers.encoded[version] = _encode_brokers(brokers, version)
    return own, partitions, live


def encoded_partitions(updates: PartitionUpdates, version: int) -> bytes:
    """The part of the body that says what is new of partitions. The value keeps it."""
    known = updates.encoded.get(version)
    if known is None:
        known = updates.encoded[version] = _encode_partitions(updates, version)
    return known


def _encode_partitions(updates: PartitionUpdates, version: int) -> bytes:
    encoding = FLEXIBLE if is_flexible(version) else LEGACY
    entries, suffix = _entries(updates, encoding)
    if version >= _GROUPED_SINCE:
        return b"".join(
            grouped_section(
                updates.partitions,
                entries,
                encoding=encoding,
                topic_ids=updates.topic_ids if version >= _TOPIC_ID_SINCE else None,
                suffix=suffix,
            )
        )
    topics = by_topic(updates.partitions, entries)
    return b"".join(ungrouped_section(topics, encoding=encoding, suffix=suffix))


def _entries(updates: PartitionUpdates, encoding: Encoding) -> tuple[list[bytes], bytes]:
    """Partition entries (without a topic name) but for a last part that is the same for all."""
    states = list(updates.partitions.values())
    deleted, offline = updates.deleted, updates.offline_replicas
    if deleted:
        states = [
            _during_delete(state) if tp in deleted else state
            for tp, state in updates.partitions.items()
        ]
    prefixes = prefixes_of(states, flexible=encoding.flexible)
    if not offline:
        return prefixes, encoding.int32_array(()) + encoding.tags
    arrays = Int32Arrays(flexible=encoding.flexible)
    # What one broker's stop changes has the same offline replica everywhere.
    ends = list(map(arrays.__getitem__, map(offline.get, updates.partitions, repeat(()))))
    if len(arrays) == 1:
        return prefixes, ends[0] + encoding.tags
    return list(map(add, prefixes, ends)), encoding.tags


def _encode_brokers(brokers: BrokerList, version: int) -> bytes:
    encoding = FLEXIBLE if is_flexible(version) else LEGACY
    live = [*brokers.brokers.values()]
    if brokers.announced is not None:
        live.append(brokers.announced)
    parts = [encoding.array_length(len(live))]
    parts += [_live_broker(broker, encoding) for broker in live]
    parts.append(encoding.tags)
    return b"".join(parts)


def _during_delete(state: PartitionState) -> PartitionState:
    changed = msgspec.structs.replace(
        state.leader_and_isr,
        leader=LEADER_DURING_DELETE,
        leader_epoch=INITIAL_LEADER_EPOCH,
        partition_epoch=_PARTITION_EPOCH_DURING_DELETE,
    )
    return PartitionState(state.partition, changed, state.assignment)


def _live_broker(broker: Broker, encoding: Encoding) -> bytes:
    parts = [pack_int32(broker.broker_id), encoding.array_length(len(broker.endpoints))]
    parts += [
        pack_int32(endpoint.port)
        + encoding.string(endpoint.host)
        + encoding.string(endpoint.listener)
        + pack_int16(_SECURITY_PROTOCOLS[endpoint.security_protocol])
        + encoding.tags
        for endpoint in broker.endpoints
    ]
    parts += [encoding.nullable_string(broker.rack), encoding.tags]
    return b"".join(parts)


def decode_update_metadata_response(
    request: UpdateMetadataRequest, body: bytes, *, version: int
) -> UpdateMetadataResponse:
    """Decode a broker's answer to a request.

    Raises:
        DecodeError: If the body is malformed.
    """
    error_code, offset = read_error_code(body, 0)
    expect_end(body, offset, flexible=is_flexible(version))
    header = request.header
    return UpdateMetadataResponse(
        broker_id=header.broker_id,
        error_code=error_code,
        controller_epoch=header.controller_epoch,
        broker_epoch=header.broker_epoch,
    )
