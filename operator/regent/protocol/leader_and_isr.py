"""LeaderAndIsr: from a request to its body, and from a response body to its errors.

Versions and their fields: ``entities/leader_and_isr.py``. In every version "type" is 0 (unknown, as
ZooKeeper-mode controllers send it) and the controller is not a KRaft one. A partition's controller
epoch is that of its last change, not that of the sender.
"""

from __future__ import annotations

import functools
import struct
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from regent.model.partition import LeaderRecoveryState, TopicPartition
from regent.model.topic import ZERO_TOPIC_ID
from regent.protocol.collected_entries import CollectedEntries, TopicEntries
from regent.protocol.control_requests import LeaderAndIsrRequest, LeaderAndIsrResponse
from regent.protocol.error_codes import NONE, STALE_CONTROLLER_EPOCH
from regent.protocol.framing import Part
from regent.protocol.partition_state import PartitionState, prefixes_of
from regent.protocol.primitives import FLEXIBLE, LEGACY, Encoding, pack_int32
from regent.protocol.response_errors import (
    expect_end,
    read_error_code,
    read_errors_by_name,
    read_errors_by_topic_id,
)
from regent.protocol.topic_sections import (
    TopicsInPieces,
    by_topic,
    grouped_section,
    topic_head,
    ungrouped_section,
)

API_KEY: Final = 4
VERSIONS: Final = range(8)

_NEW_FLAG_SINCE: Final = 1
_GROUPED_SINCE: Final = 2
_REASSIGNMENT_SINCE: Final = 3
_FLEXIBLE_SINCE: Final = 4
_TOPIC_ID_SINCE: Final = 5
_RECOVERY_STATE_SINCE: Final = 6
_RECOVERY_STATE_PROTOCOL: Final = (3, 2)
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

_LOOKED_AT: Final = 10_000

_pack_epochs: Final = struct.Struct(">iq").pack
_is_unusual: Final = attrgetter("is_unusual")
_topic_of: Final = itemgetter(0)
_leader_of: Final = attrgetter("leader_and_isr.leader")


def is_flexible(version: int) -> bool:
    return version >= _FLEXIBLE_SINCE


def encode_leader_and_isr(
    request: LeaderAndIsrRequest, *, version: int, listener: str | None = None
) -> tuple[Part, ...]:
    """The request body, in several parts if its entries were collected beforehand.

    The live leaders are the known brokers that lead a named partition, and in a large batch all.
    Brokers have ignored that list since Kafka 0.10; host and port are those of a listener, or of a
    broker's first endpoint where it lacks that listener.

    Args:
        version: One of :data:`VERSIONS`.
        listener: Name of the listener under which the live leaders are given; None: the first of
            each broker.

    Raises:
        KeyError: If a partition has no state.
    """
    encoding = FLEXIBLE if is_flexible(version) else LEGACY
    header = request.header
    parts = [pack_int32(header.controller_id)]
    if version >= _KRAFT_FLAG_SINCE:
        parts.append(b"\x00")
    if version >= _GROUPED_SINCE:
        parts.append(_pack_epochs(header.controller_epoch, header.broker_epoch))
    else:
        parts.append(pack_int32(header.controller_epoch))
    if version >= _TOPIC_ID_SINCE:
        parts.append(b"\x00")
    leaders = [*_live_leaders(request, listener, encoding), encoding.tags]
    if _fits(request.entries, version):
        head = topic_head(request.topic_ids, encoding, with_id=version >= _TOPIC_ID_SINCE)
        section = TopicsInPieces(_all_entries(request, version, encoding), head)
        return b"".join(parts), section, b"".join(leaders)
    entries, suffix = _entries_of(request, request.partitions, version, encoding)
    if version >= _GROUPED_SINCE:
        parts += grouped_section(
            request.partitions,
            entries,
            encoding=encoding,
            topic_ids=request.topic_ids if version >= _TOPIC_ID_SINCE else None,
            suffix=suffix,
        )
    else:
        topics = by_topic(request.partitions, entries)
        parts += ungrouped_section(topics, encoding=encoding, suffix=suffix)
    return (b"".join(parts + leaders),)


def usual_suffix(protocol: tuple[int, int]) -> bytes:
    """What ends an entry in the flexible encoding if nothing about its partition is unusual.

    Args:
        protocol: The inter.broker.protocol.version by which requests are sent.
    """
    version = _RECOVERY_STATE_SINCE if protocol >= _RECOVERY_STATE_PROTOCOL else _FLEXIBLE_SINCE
    return _usual_suffix(version)


@functools.cache
def _usual_suffix(version: int) -> bytes:
    return _suffix((), (), LeaderRecoveryState.RECOVERED, False, version=version, encoding=FLEXIBLE)


def is_collected(request: LeaderAndIsrRequest, version: int) -> bool:
    """Whether all partition entries were collected beforehand: the request is encoded without a
    look at its partitions."""
    entries = request.entries
    return _fits(entries, version) and entries.entry_count == len(request.partitions)


def _fits(entries: CollectedEntries, version: int) -> bool:
    """Whether there are entries, as this version has them."""
    return (
        is_flexible(version) and bool(entries.topics) and entries.suffix == _usual_suffix(version)
    )


def _all_entries(
    request: LeaderAndIsrRequest, version: int, encoding: Encoding
) -> Mapping[str, TopicEntries]:
    """The entries that were collected, and those of topics that were left out, or in part."""
    collected = request.entries.topics
    if is_collected(request, version):
        return collected
    counts = Counter(map(_topic_of, request.partitions))
    topics = {topic: some for topic, some in collected.items() if some.count == counts[topic]}
    others = {tp: is_new for tp, is_new in request.partitions.items() if tp[0] not in topics}
    entries, suffix = _entries_of(request, others, version, encoding)
    topics |= {
        topic: TopicEntries.of(some, suffix=suffix)
        for topic, some in by_topic(others, entries).items()
    }
    return {topic: topics[topic] for topic in counts}


def _entries_of(
    request: LeaderAndIsrRequest,
    partitions: Mapping[TopicPartition, bool],
    version: int,
    encoding: Encoding,
) -> tuple[list[bytes], bytes]:
    """Entries of some partitions, but for a last part that is the same for all."""
    states = list(map(request.states.__getitem__, partitions))
    return _entries(states, list(partitions.values()), version, encoding)


def _entries(
    states: Sequence[PartitionState], new: Sequence[bool], version: int, encoding: Encoding
) -> tuple[list[bytes], bytes]:
    """Partition entries (without a topic name) but for a last part that is the same for all."""
    prefixes = prefixes_of(states, flexible=encoding.flexible)
    suffix_of = functools.cache(
        functools.partial(_suffix, version=version, encoding=encoding)
    )  # a request has few different ones
    are_new = any(new)
    if (all(new) or not are_new) and not any(map(_is_unusual, states)):
        return prefixes, suffix_of((), (), LeaderRecoveryState.RECOVERED, are_new)
    return [
        prefix
        + suffix_of(
            state.assignment.adding_replicas,
            state.assignment.removing_replicas,
            state.leader_and_isr.leader_recovery_state,
            is_new,
        )
        for prefix, state, is_new in zip(prefixes, states, new, strict=True)
    ], b""


def _suffix(
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    recovery: int,
    is_new: bool,
    *,
    version: int,
    encoding: Encoding,
) -> bytes:
    fields = b""
    if version >= _REASSIGNMENT_SINCE:
        fields += encoding.int32_array(adding) + encoding.int32_array(removing)
    if version >= _NEW_FLAG_SINCE:
        fields += b"\x01" if is_new else b"\x00"
    if version >= _RECOVERY_STATE_SINCE:
        fields += recovery.to_bytes(1, "big", signed=True)
    return fields + encoding.tags


def _live_leaders(
    request: LeaderAndIsrRequest, listener: str | None, encoding: Encoding
) -> list[bytes]:
    ids = sorted(_leaders_among(request))
    parts = [encoding.array_length(len(ids))]
    for leader in ids:
        broker = request.brokers[leader]
        endpoint = (listener and broker.endpoint(listener)) or broker.endpoints[0]
        parts.append(
            pack_int32(leader)
            + encoding.string(endpoint.host)
            + pack_int32(endpoint.port)
            + encoding.tags
        )
    return parts


def _leaders_among(request: LeaderAndIsrRequest) -> Collection[int]:
    """The live brokers that lead one of the partitions. In a large batch nearly all do, so all are
    named without a look at it: its states may be in no table."""
    if len(request.states) > _LOOKED_AT:
        return request.brokers.keys()
    states = map(request.states.__getitem__, request.partitions)
    return request.brokers.keys() & set(map(_leader_of, states))


def decode_leader_and_isr_response(
    request: LeaderAndIsrRequest, body: bytes, *, version: int
) -> LeaderAndIsrResponse:
    """Decode a broker's answer to a request.

    Partitions with one of the codes in :data:`NOTHING_FOLLOWS` have no entry among the errors.

    From version 5 on the answer names topics by id, so the request is needed to understand it.
    Errors of topics that the request gave no id cannot be distinguished there: they are left out
    unless there is only one such topic. Kafka's controller gives every topic an id before it uses
    these versions.

    Raises:
        DecodeError: If the body is malformed.
    """
    flexible = is_flexible(version)
    error_code, offset = read_error_code(body, 0)
    if version >= _TOPIC_ID_SINCE:
        errors, offset = read_errors_by_topic_id(
            body,
            offset,
            names=lambda: _names_by_id(request),
            ignored=NOTHING_FOLLOWS,
        )
    else:
        errors, offset = read_errors_by_name(
            body, offset, flexible=flexible, ignored=NOTHING_FOLLOWS
        )
    expect_end(body, offset, flexible=flexible)
    header = request.header
    return LeaderAndIsrResponse(
        broker_id=header.broker_id,
        error_code=error_code,
        partition_errors=errors,
        partitions=request.partitions,
        controller_epoch=header.controller_epoch,
        broker_epoch=header.broker_epoch,
        topic_ids=request.topic_ids,
    )


def _names_by_id(request: LeaderAndIsrRequest) -> dict[uuid.UUID, str]:
    names: dict[uuid.UUID, str] = {}
    without_id: list[str] = []
    for topic in dict.fromkeys(tp.topic for tp in request.partitions):
        topic_id = request.topic_ids.get(topic, ZERO_TOPIC_ID)
        if topic_id == ZERO_TOPIC_ID:
            without_id.append(topic)
        else:
            names[topic_id] = topic
    if len(without_id) == 1:
        names[ZERO_TOPIC_ID] = without_id[0]
    return names
