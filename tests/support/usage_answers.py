"""Answers of brokers that say whether a topic is used, as kio writes them."""

from __future__ import annotations

import struct

from kio.schema.describe_groups.v0 import response as describe_groups
from kio.schema.errors import ErrorCode
from kio.schema.list_groups.v0 import response as list_groups
from kio.schema.list_offsets.v1 import response as list_offsets
from kio.schema.offset_fetch.v1 import response as offset_fetch
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from tests.support.stub_broker import encode

ORDERS = TopicName("orders")


def offsets(*partitions: tuple[int, int, int]) -> bytes:
    """Answer to ListOffsets: index, error and offset of partitions."""
    listed = tuple(
        list_offsets.ListOffsetsPartitionResponse(
            partition_index=i32(index),
            error_code=ErrorCode(code),
            timestamp=i64(-1),
            offset=i64(offset),
        )
        for index, code, offset in partitions
    )
    topic = list_offsets.ListOffsetsTopicResponse(name=ORDERS, partitions=listed)
    return encode(list_offsets.ListOffsetsResponse(topics=(topic,)))


def listed(*groups: str, code: int = 0) -> bytes:
    """Answer to ListGroups: groups of consumers."""
    found = tuple(
        list_groups.ListedGroup(group_id=GroupId(name), protocol_type="consumer") for name in groups
    )
    return encode(list_groups.ListGroupsResponse(error_code=ErrorCode(code), groups=found))


def subscription(*topics: str) -> bytes:
    """The metadata with which a consumer joins its group."""
    names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">ii", -1, 0)


def described(
    groups: dict[str, list[bytes]], *, protocol: str = "consumer", code: int = 0
) -> bytes:
    """Answer to DescribeGroups: the metadata of the members of each group."""
    return encode(
        describe_groups.DescribeGroupsResponse(
            groups=tuple(
                describe_groups.DescribedGroup(
                    error_code=ErrorCode(code),
                    group_id=GroupId(name),
                    group_state="Stable",
                    protocol_type=protocol,
                    protocol_data="range",
                    members=tuple(
                        describe_groups.DescribedGroupMember(
                            member_id="m",
                            client_id="c",
                            client_host="/127.0.0.1",
                            member_metadata=each,
                            member_assignment=b"",
                        )
                        for each in members
                    ),
                )
                for name, members in groups.items()
            )
        )
    )


def committed(*offsets_: int, code: int = 0) -> bytes:
    """Answer to OffsetFetch: the offset of each partition, or -1."""
    partitions = tuple(
        offset_fetch.OffsetFetchResponsePartition(
            partition_index=i32(index),
            committed_offset=i64(offset),
            metadata="",
            error_code=ErrorCode(code),
        )
        for index, offset in enumerate(offsets_)
    )
    topic = offset_fetch.OffsetFetchResponseTopic(name=ORDERS, partitions=partitions)
    return encode(offset_fetch.OffsetFetchResponse(topics=(topic,)))
