"""LeaderAndIsr: from a batch to request bodies, and from a response body to its errors.

Versions and their fields: ``entities/leader_and_isr.py``. In every version "type" is 0 (unknown, as
ZooKeeper-mode controllers send it) and the controller is not a KRaft one. A partition's controller
epoch is that of its last change, not that of the sender.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Final

from regent.model.partition import LeaderRecoveryState, TopicPartition
from regent.model.topic import ZERO_TOPIC_ID
from regent.protocol.control_requests import ControlRequests, LeaderAndIsrResponse
from regent.protocol.error_codes import NONE, STALE_CONTROLLER_EPOCH
from regent.protocol.partition_sections import (
    PartitionPrefixes,
    by_topic,
    topics_section,
    ungrouped_section,
)
from regent.protocol.primitives import (
    pack_int32,
    uuid_bytes,
)
from regent.protocol.response_errors import (
    expect_end,
    read_error_code,
    read_errors_by_name,
    read_errors_by_topic_id,
)

API_KEY: Final = 4
VERSIONS: Final = range(8)

_NEW_FLAG_SINCE: Final = 1
_GROUPED_SINCE: Final = 2
_REASSIGNMENT_SINCE: Final = 3
_TOPIC_ID_SINCE: Final = 5
_RECOVERY_STATE_SINCE: Final = 6
_KRAFT_FLAG_SINCE: Final = 7

NOTHING_FOLLOWS: Final = bytes((NONE, STALE_CONTROLLER_EPOCH))
"""Error codes of a single partition that an answer leaves out.

For a partition STALE_CONTROLLER_EPOCH means that the broker hosts it with this leader epoch or a
higher one. With an equal epoch that is the normal answer after a failover, for every partition.
With a higher one the broker knows more than this request says, and has the rest from the controller
that raised the epoch. The code of the whole answer says if the controller itself is out of date.
A replica on a failed log directory answers KAFKA_STORAGE_ERROR before its epoch is compared.

Source: ``ReplicaManager.becomeLeaderOrFollower`` (1.1 to 3.9 alike).
"""

_pack_epochs: Final = struct.Struct(">iq").pack
_leader_of_entry: Final = itemgetter(slice(8, 12))


def is_flexible(version: int) -> bool:
    return version >= 4


def _encode_entries(
    requests: ControlRequests, prefixes: PartitionPrefixes, *, version: int, is_new: bool
) -> dict[TopicPartition, bytes]:
    """Whole partition entries (without a topic name), for new replicas or for known ones."""
    arrays, tags = prefixes.arrays, prefixes.encoding.tags

    def suffix(adding: tuple[int, ...], removing: tuple[int, ...], recovery: int) -> bytes:
        fields = b""
        if version >= _REASSIGNMENT_SINCE:
            fields += arrays[adding] + arrays[removing]
        if version >= _NEW_FLAG_SINCE:
            fields += b"\x01" if is_new else b"\x00"
        if version >= _RECOVERY_STATE_SINCE:
            fields += recovery.to_bytes(1, "big", signed=True)
        return fields + tags

    usual = suffix((), (), LeaderRecoveryState.RECOVERED)
    entries = {tp: prefix + usual for tp, prefix in prefixes.items()}
    for tp in prefixes.unusual:
        state, assignment = requests.partitions[tp]
        entries[tp] = prefixes[tp] + suffix(
            assignment.adding_replicas,
            assignment.removing_replicas,
            state.leader_recovery_state,
        )
    return entries


class LeaderAndIsrEncoder:
    """Request bodies of one batch in one version.

    Args:
        requests: The batch.
        prefixes: Shared partition bytes in the encoding of ``version``.
        version: One of :data:`VERSIONS`.
        listener: Listener under which the live leaders are given; see :meth:`body`.
    """

    def __init__(
        self,
        requests: ControlRequests,
        prefixes: PartitionPrefixes,
        *,
        version: int,
        listener: str | None,
    ) -> None:
        self._requests = requests
        self._version = version
        self._encoding = prefixes.encoding
        self._listener = listener
        self._prefixes = prefixes
        self._entries: dict[bool, dict[TopicPartition, bytes]] = {}

    def body(self, broker_id: int) -> bytes:
        """The request body for one receiver.

        The live leaders are the brokers of the batch that lead a named partition. Brokers have
        ignored that list since Kafka 0.10; host and port are those of the configured listener, or
        of a broker's first endpoint where it lacks that listener.
        """
        requests, version, encoding = self._requests, self._version, self._encoding
        wanted = requests.leader_and_isr[broker_id]
        topics = by_topic(wanted, self._entry_of(wanted))
        parts = [pack_int32(requests.controller_id)]
        if version >= _KRAFT_FLAG_SINCE:
            parts.append(b"\x00")
        if version >= _GROUPED_SINCE:
            epoch = requests.brokers[broker_id].epoch
            parts.append(_pack_epochs(requests.controller_epoch, epoch))
        else:
            parts.append(pack_int32(requests.controller_epoch))
        if version >= _TOPIC_ID_SINCE:
            parts.append(b"\x00")
        if version >= _GROUPED_SINCE:
            parts += topics_section(topics, self._topic_head, encoding=encoding)
        else:
            parts += ungrouped_section(topics, encoding=encoding)
        parts += self._live_leaders(topics)
        parts.append(encoding.tags)
        return b"".join(parts)

    def _entry_of(self, wanted: Mapping[TopicPartition, bool]) -> Callable[[TopicPartition], bytes]:
        # Batches are nearly always of one kind, and the general case costs a call per partition.
        if not any(wanted.values()):
            return self._entries_for(is_new=False).__getitem__
        if all(wanted.values()):
            return self._entries_for(is_new=True).__getitem__
        known, new = self._entries_for(is_new=False), self._entries_for(is_new=True)
        return lambda tp: new[tp] if wanted[tp] else known[tp]

    def _entries_for(self, *, is_new: bool) -> dict[TopicPartition, bytes]:
        entries = self._entries.get(is_new)
        if entries is None:
            entries = self._entries[is_new] = _encode_entries(
                self._requests, self._prefixes, version=self._version, is_new=is_new
            )
        return entries

    def _topic_head(self, topic: str) -> bytes:
        name = self._encoding.string(topic)
        if self._version < _TOPIC_ID_SINCE:
            return name
        return name + uuid_bytes(self._requests.topic_ids.get(topic))

    def _live_leaders(self, topics: Mapping[str, list[bytes]]) -> list[bytes]:
        brokers, encoding = self._requests.brokers, self._encoding
        others = {pack_int32(broker_id): broker_id for broker_id in brokers}
        leading: set[int] = set()
        for entries in topics.values():
            for raw in others.keys() & set(map(_leader_of_entry, entries)):
                leading.add(others.pop(raw))
            if not others:
                break
        ids = sorted(leading)
        parts = [encoding.array_length(len(ids))]
        for leader in ids:
            broker = brokers[leader]
            endpoint = (self._listener and broker.endpoint(self._listener)) or broker.endpoints[0]
            parts.append(
                pack_int32(leader)
                + encoding.string(endpoint.host)
                + pack_int32(endpoint.port)
                + encoding.tags
            )
        return parts


def decode_leader_and_isr_response(
    version: int, body: bytes, *, requests: ControlRequests, broker_id: int
) -> LeaderAndIsrResponse:
    """Decode a broker's answer to the body that it got for ``requests``.

    Partitions with one of the codes in :data:`NOTHING_FOLLOWS` have no entry among the errors.

    From version 5 on the answer names topics by id, so the request is needed to understand it.
    Errors of topics that the request gave no id cannot be distinguished there: they are left out
    unless there is only one such topic. Kafka's controller gives every topic an id before it uses
    these versions.

    Raises:
        DecodeError: If the body is malformed.
    """
    flexible = is_flexible(version)
    partitions = requests.leader_and_isr[broker_id]
    error_code, offset = read_error_code(body, 0)
    if version >= _TOPIC_ID_SINCE:
        errors, offset = read_errors_by_topic_id(
            body,
            offset,
            names=lambda: _names_by_id(requests, partitions),
            ignored=NOTHING_FOLLOWS,
        )
    else:
        errors, offset = read_errors_by_name(
            body, offset, flexible=flexible, ignored=NOTHING_FOLLOWS
        )
    expect_end(body, offset, flexible=flexible)
    return LeaderAndIsrResponse(
        broker_id=broker_id,
        error_code=error_code,
        partition_errors=errors,
        partitions=partitions,
    )


def _names_by_id(
    requests: ControlRequests, partitions: Iterable[TopicPartition]
) -> dict[uuid.UUID, str]:
    names: dict[uuid.UUID, str] = {}
    without_id: list[str] = []
    for topic in dict.fromkeys(tp.topic for tp in partitions):
        topic_id = requests.topic_ids.get(topic, ZERO_TOPIC_ID)
        if topic_id == ZERO_TOPIC_ID:
            without_id.append(topic)
        else:
            names[topic_id] = topic
    if len(without_id) == 1:
        names[ZERO_TOPIC_ID] = without_id[0]
    return names
