"""Whether a topic is used: ListOffsets, ListGroups, DescribeGroups and OffsetFetch about it.

In versions that every broker with ZooKeeper understands, all of the legacy encoding. A decoder
raises :class:`UsageUnknownError` for every error: what is not known must not be taken for unused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from regent.model.errors import RegentError
from regent.protocol import list_offsets
from regent.protocol.error_codes import NONE, error_name
from regent.protocol.primitives import LEGACY, DecodeError, Reader

_CONSUMER: Final = "consumer"
"""Type of the protocol whose members say to which topics they subscribe."""


class Api(NamedTuple):
    """A request: its key, and the only version of it that is sent."""

    key: int
    version: int
    name: str


LIST_OFFSETS: Final = Api(list_offsets.API_KEY, list_offsets.VERSION, "ListOffsets")
OFFSET_FETCH: Final = Api(9, 1, "OffsetFetch")
DESCRIBE_GROUPS: Final = Api(15, 0, "DescribeGroups")
LIST_GROUPS: Final = Api(16, 0, "ListGroups")


class UsageUnknownError(RegentError):
    """A broker has answered with an error."""

    def __init__(self, api: Api, code: int, *, about: str = "") -> None:
        what = f" for {about}" if about else ""
        super().__init__(f"{api.name} was answered with {error_name(code)}{what}")


def encode_list_offsets(topic: str, partitions: Iterable[int], *, since_ms: int) -> bytes:
    """Ask for the first offset at or after a time.

    Args:
        since_ms: Milliseconds since 1970.
    """
    return list_offsets.encode_list_offsets({topic: partitions}, at=since_ms)


def decode_list_offsets(topic: str, partitions: Collection[int], body: bytes) -> frozenset[int]:
    """The partitions with a record at or after the time.

    Raises:
        UsageUnknownError: If the broker does not know that of one of them.
        DecodeError: If the body is malformed, or a partition is missing.
    """
    found: dict[int, int] = {}
    for listed in list_offsets.decode_list_offsets(body):
        if listed.error != NONE:
            about = f"{listed.topic}-{listed.partition}"
            raise UsageUnknownError(LIST_OFFSETS, listed.error, about=about)
        if listed.topic == topic:
            found[listed.partition] = listed.offset
    _require_all(partitions, found)
    return frozenset(index for index, offset in found.items() if offset >= 0)


def decode_list_groups(body: bytes) -> dict[str, str]:
    """The groups that a broker coordinates, each with the type of its protocol. A user who may not
    describe the cluster gets only those that it may describe, without an error."""
    reader = Reader(body)
    code = reader.int16()
    if code != NONE:
        raise UsageUnknownError(LIST_GROUPS, code)
    return {reader.string(): reader.string() for _ in range(reader.array_length())}


def encode_describe_groups(groups: Collection[str]) -> bytes:
    return LEGACY.array_length(len(groups)) + b"".join(map(LEGACY.string, groups))


def decode_subscribed_groups(topic: str, body: bytes) -> frozenset[str]:
    """Those of the described groups with a member that subscribes to a topic.

    Raises:
        UsageUnknownError: If the broker does not describe one of them.
        DecodeError: If the body is malformed.
    """
    reader = Reader(body)
    found: set[str] = set()
    for _ in range(reader.array_length()):
        code, group = reader.int16(), reader.string()
        if code != NONE:
            raise UsageUnknownError(DESCRIBE_GROUPS, code, about=f"group {group}")
        reader.string()  # state
        protocol = reader.string()
        reader.string()  # strategy
        for _ in range(reader.array_length()):
            for _ in range(3):  # member, client, host
                reader.string()
            subscription, _ = reader.sized_bytes(), reader.sized_bytes()
            if protocol == _CONSUMER and topic in _subscribed_topics(subscription):
                found.add(group)
    return frozenset(found)


def _subscribed_topics(subscription: bytes) -> frozenset[str]:
    """What a member subscribes to; nothing while its group is being rebalanced for the first time.

    Every version of the consumers' protocol begins like this.
    """
    if not subscription:
        return frozenset()
    reader = Reader(subscription)
    reader.int16()  # version
    return frozenset(reader.string() for _ in range(reader.array_length()))


def encode_offset_fetch(group: str, topic: str, partitions: Collection[int]) -> bytes:
    indexes = LEGACY.int32_array(tuple(partitions))
    return LEGACY.string(group) + LEGACY.array_length(1) + LEGACY.string(topic) + indexes


def decode_has_offsets(group: str, topic: str, partitions: Collection[int], body: bytes) -> bool:
    """Whether a group has committed an offset for one of the partitions.

    Raises:
        UsageUnknownError: If the broker does not know that of one of them.
        DecodeError: If the body is malformed, or a partition is missing.
    """
    reader = Reader(body)
    found: dict[int, int] = {}
    for _ in range(reader.array_length()):
        named = reader.string()
        for _ in range(reader.array_length()):
            index, offset = reader.int32(), reader.int64()
            reader.nullable_string()  # metadata
            code = reader.int16()
            if code != NONE:
                raise UsageUnknownError(OFFSET_FETCH, code, about=f"group {group}")
            if named == topic:
                found[index] = offset
    _require_all(partitions, found)
    return any(offset >= 0 for offset in found.values())


def _require_all(partitions: Collection[int], found: Collection[int]) -> None:
    missing = sorted(set(partitions).difference(found))
    if missing:
        raise DecodeError(f"the answer says nothing about partitions {missing[:5]}")
