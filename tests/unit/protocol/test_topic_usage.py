"""Requests that say whether a topic is used, byte by byte as kio has them."""

from __future__ import annotations

import struct

import pytest
from kio.schema.describe_groups.v0 import request as describe_request
from kio.schema.describe_groups.v0 import response as describe_response
from kio.schema.errors import ErrorCode
from kio.schema.list_groups.v0 import response as list_response
from kio.schema.list_offsets.v1 import request as offsets_request
from kio.schema.list_offsets.v1 import response as offsets_response
from kio.schema.offset_fetch.v1 import request as fetch_request
from kio.schema.offset_fetch.v1 import response as fetch_response
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import i32, i64

from regent.protocol.primitives import DecodeError
from regent.protocol.topic_usage import (
    UsageUnknownError,
    decode_has_offsets,
    decode_list_groups,
    decode_list_offsets,
    decode_subscribed_groups,
    encode_describe_groups,
    encode_list_offsets,
    encode_offset_fetch,
)
from tests.support.stub_broker import encode

ORDERS = TopicName("orders")
SINCE_MS = 1_777_636_800_000


def test_the_first_offset_at_or_after_a_time_is_asked_for() -> None:
    expected = offsets_request.ListOffsetsRequest(
        replica_id=BrokerId(-1),
        topics=(
            offsets_request.ListOffsetsTopic(
                name=ORDERS,
                partitions=tuple(
                    offsets_request.ListOffsetsPartition(
                        partition_index=i32(index),
                        timestamp=i64(SINCE_MS),
                    )
                    for index in (0, 3)
                ),
            ),
        ),
    )
    assert encode_list_offsets("orders", (0, 3), since_ms=SINCE_MS) == encode(expected)


def offsets(*partitions: tuple[int, int, int]) -> bytes:
    """Answer to ListOffsets: index, error and offset of partitions."""
    listed = b"".join(struct.pack(">ihqq", i, code, -1, offset) for i, code, offset in partitions)
    head = struct.pack(">i", 1) + b"\x00\x06orders" + struct.pack(">i", len(partitions))
    return head + listed


def test_partitions_with_such_records_have_an_offset() -> None:
    body = encode(
        offsets_response.ListOffsetsResponse(
            topics=(
                offsets_response.ListOffsetsTopicResponse(
                    name=ORDERS,
                    partitions=(
                        offsets_response.ListOffsetsPartitionResponse(
                            partition_index=i32(0),
                            error_code=ErrorCode.none,
                            timestamp=i64(SINCE_MS),
                            offset=i64(0),
                        ),
                    ),
                ),
            )
        )
    )
    assert decode_list_offsets("orders", (0,), body) == {0}
    assert decode_list_offsets("orders", (0, 3, 4), offsets((0, 0, -1), (3, 0, 7), (4, 0, 0))) == {
        3,
        4,
    }


def test_an_error_or_a_missing_partition_is_no_answer() -> None:
    with pytest.raises(
        UsageUnknownError, match=r"answered with TOPIC_AUTHORIZATION_FAILED for orders-3"
    ):
        decode_list_offsets("orders", (0, 3), offsets((0, 0, -1), (3, 29, -1)))
    with pytest.raises(DecodeError, match=r"nothing about partitions \[3\]"):
        decode_list_offsets("orders", (0, 3), offsets((0, 0, -1)))
    with pytest.raises(DecodeError):
        decode_list_offsets("orders", (0,), offsets((0, 0, -1))[:-1])


def test_groups_are_listed_with_their_protocol() -> None:
    def answer(code: ErrorCode) -> bytes:
        groups = (list_response.ListedGroup(group_id=GroupId("billing"), protocol_type="consumer"),)
        return encode(list_response.ListGroupsResponse(error_code=code, groups=groups))

    assert decode_list_groups(answer(ErrorCode.none)) == {"billing": "consumer"}
    with pytest.raises(UsageUnknownError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        decode_list_groups(answer(ErrorCode.coordinator_load_in_progress))


def subscription(*topics: str) -> bytes:
    """As a consumer joins its group."""
    listed = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 1, len(topics)) + listed + struct.pack(">ii", -1, 0)


def described(*members: bytes, protocol: str = "consumer", code: int = 0) -> bytes:
    return encode(
        describe_response.DescribeGroupsResponse(
            groups=(
                describe_response.DescribedGroup(
                    error_code=ErrorCode(code),
                    group_id=GroupId("billing"),
                    group_state="Stable",
                    protocol_type=protocol,
                    protocol_data="range",
                    members=tuple(
                        describe_response.DescribedGroupMember(
                            member_id="m",
                            client_id="c",
                            client_host="/127.0.0.1",
                            member_metadata=each,
                            member_assignment=b"",
                        )
                        for each in members
                    ),
                ),
            )
        )
    )


def test_groups_are_described_together() -> None:
    expected = describe_request.DescribeGroupsRequest(groups=(GroupId("a"), GroupId("b")))
    assert encode_describe_groups(["a", "b"]) == encode(expected)


def test_a_group_is_subscribed_if_one_of_its_members_is() -> None:
    body = described(subscription("other"), subscription("more", "orders"))
    assert decode_subscribed_groups("orders", body) == {"billing"}
    assert decode_subscribed_groups("order", body) == frozenset()
    assert decode_subscribed_groups("orders", described(b"")) == frozenset()
    connect = described(b"\x00", protocol="connect")
    assert decode_subscribed_groups("orders", connect) == frozenset()
    with pytest.raises(UsageUnknownError, match="GROUP_AUTHORIZATION_FAILED for group billing"):
        decode_subscribed_groups("orders", described(code=30))
    with pytest.raises(DecodeError):
        decode_subscribed_groups("orders", described(subscription("orders")[:-12]))


def committed(*offsets_: int, code: int = 0) -> bytes:
    return encode(
        fetch_response.OffsetFetchResponse(
            topics=(
                fetch_response.OffsetFetchResponseTopic(
                    name=ORDERS,
                    partitions=tuple(
                        fetch_response.OffsetFetchResponsePartition(
                            partition_index=i32(index),
                            committed_offset=i64(offset),
                            metadata="",
                            error_code=ErrorCode(code),
                        )
                        for index, offset in enumerate(offsets_)
                    ),
                ),
            )
        )
    )


def test_a_group_has_offsets_if_it_has_one_of_any_partition() -> None:
    expected = fetch_request.OffsetFetchRequest(
        group_id=GroupId("billing"),
        topics=(
            fetch_request.OffsetFetchRequestTopic(name=ORDERS, partition_indexes=(i32(0), i32(1))),
        ),
    )
    assert encode_offset_fetch("billing", "orders", (0, 1)) == encode(expected)
    assert decode_has_offsets("billing", "orders", (0, 1), committed(-1, 0))
    assert not decode_has_offsets("billing", "orders", (0, 1), committed(-1, -1))
    with pytest.raises(UsageUnknownError, match="NOT_COORDINATOR for group billing"):
        decode_has_offsets("billing", "orders", (0,), committed(-1, code=16))
    with pytest.raises(DecodeError, match="nothing about partitions"):
        decode_has_offsets("billing", "orders", (0, 1), committed(-1))
