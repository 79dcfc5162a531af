"""UpdateMetadata: from a batch to request bodies, and from a response body to its error.

Versions and their fields: ``entities/update_metadata.py``. Everything behind the receiver's broker
epoch is the same for all receivers and is encoded once. A partition of a topic that is being
deleted is sent as Kafka's ``LeaderAndIsr.duringDelete`` makes it: leader -2, leader epoch and
partition epoch 0, the rest kept. Partitions without a state are left out: the brokers do not know
them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from regent.model.cluster import Broker
from regent.model.partition import INITIAL_LEADER_EPOCH, LEADER_DURING_DELETE, TopicPartition
from regent.protocol.control_requests import ControlRequests, PartitionState, UpdateMetadataResponse
from regent.protocol.partition_sections import (
    PartitionPrefixes,
    by_topic,
    topics_section,
    ungrouped_section,
)
from regent.protocol.primitives import Encoding, pack_int16, pack_int32, uuid_bytes
from regent.protocol.response_errors import expect_end, read_error_code

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


class UpdateMetadataEncoder:
    """Request bodies of one batch in one version.

    Args:
        requests: The batch.
        prefixes: Shared partition bytes in the encoding of ``version``.
        version: One of :data:`VERSIONS`.
    """

    def __init__(
        self, requests: ControlRequests, prefixes: PartitionPrefixes, *, version: int
    ) -> None:
        self._requests = requests
        self._version = version
        self._prefixes = prefixes
        self._shared: bytes | None = None

    def body(self, broker_id: int) -> tuple[bytes, bytes]:
        """The request body for one receiver, in two parts: its own, and the one all share."""
        requests, version = self._requests, self._version
        own = pack_int32(requests.controller_id)
        if version >= _KRAFT_FLAG_SINCE:
            own += b"\x00"
        if version >= _GROUPED_SINCE:
            own += _pack_epochs(requests.controller_epoch, requests.brokers[broker_id].epoch)
        else:
            own += pack_int32(requests.controller_epoch)
        if self._shared is None:
            self._shared = self._encode_shared()
        return own, self._shared

    def _encode_shared(self) -> bytes:
        encoding = self._prefixes.encoding
        topics = by_topic(self._named_partitions(), self._entry_of())
        if self._version >= _GROUPED_SINCE:
            parts = topics_section(topics, self._topic_head, encoding=encoding)
        else:
            parts = ungrouped_section(topics, encoding=encoding)
        brokers = self._requests.brokers
        parts.append(encoding.array_length(len(brokers)))
        parts += [_live_broker(broker, encoding) for broker in brokers.values()]
        parts.append(encoding.tags)
        return b"".join(parts)

    def _named_partitions(self) -> list[TopicPartition]:
        known = self._requests.partitions
        return [tp for tp in self._requests.update_metadata if tp in known]

    def _entry_of(self) -> Callable[[TopicPartition], bytes]:
        requests, prefixes = self._requests, self._prefixes
        arrays, tags = prefixes.arrays, prefixes.encoding.tags
        none_offline = arrays[()] + tags
        if not requests.offline_replicas and not requests.deleted_partitions:
            return lambda tp: prefixes[tp] + none_offline

        deleted = requests.deleted_partitions
        states = {
            tp: _during_delete(state) for tp, state in requests.partitions.items() if tp in deleted
        }
        deleted_prefixes = PartitionPrefixes(states, encoding=prefixes.encoding)
        offline_replicas = requests.offline_replicas

        def entry(tp: TopicPartition) -> bytes:
            prefix = deleted_prefixes[tp] if tp in deleted else prefixes[tp]
            return prefix + arrays[offline_replicas.get(tp, ())] + tags

        return entry

    def _topic_head(self, topic: str) -> bytes:
        name = self._prefixes.encoding.string(topic)
        if self._version < _TOPIC_ID_SINCE:
            return name
        return name + uuid_bytes(self._requests.topic_ids.get(topic))


def _during_delete(state: PartitionState) -> PartitionState:
    changed = msgspec.structs.replace(
        state.leader_and_isr,
        leader=LEADER_DURING_DELETE,
        leader_epoch=INITIAL_LEADER_EPOCH,
        partition_epoch=_PARTITION_EPOCH_DURING_DELETE,
    )
    return PartitionState(changed, state.assignment)


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
    version: int, body: bytes, *, broker_id: int
) -> UpdateMetadataResponse:
    """Decode a broker's answer.

    Raises:
        DecodeError: If the body is malformed.
    """
    error_code, offset = read_error_code(body, 0)
    expect_end(body, offset, flexible=is_flexible(version))
    return UpdateMetadataResponse(broker_id=broker_id, error_code=error_code)
