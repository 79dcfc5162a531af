"""Requests that say whether a topic is used, byte by byte as kio has them."""

from __future__ import annotations

import pytest
from kio.schema.describe_groups.v0 import request as describe_request
from kio.schema.list_offsets.v1 import request as offsets_request
from kio.schema.offset_fetch.v1 import request as fetch_request
from kio.schema.types import BrokerId, GroupId
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
from tests.support.usage_answers import (
    ORDERS,
    committed,
    described,
    listed,
    offsets,
    subscription,
)

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


def test_partitions_with_such_records_have_an_offset() -> None:
    body = offsets((0, 0, -1), (3, 0, 7), (4, 0, 0))
    assert decode_list_offsets("orders", (0, 3, 4), body) == {3, 4}


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
    assert decode_list_groups(listed("billing")) == {"billing": "consumer"}
    with pytest.raises(UsageUnknownError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        decode_list_groups(listed("billing", code=14))


def test_groups_are_described_together() -> None:
    expected = describe_request.DescribeGroupsRequest(groups=(GroupId("a"), GroupId("b")))
    assert encode_describe_groups(["a", "b"]) == encode(expected)


def test_a_group_is_subscribed_if_one_of_its_members_is() -> None:
    body = described({"billing": [subscription("other"), subscription("more", "orders")]})
    assert decode_subscribed_groups("orders", body) == {"billing"}
    assert decode_subscribed_groups("order", body) == frozenset()
    assert decode_subscribed_groups("orders", described({"billing": [b""]})) == frozenset()
    connect = described({"billing": [b"\x00"]}, protocol="connect")
    assert decode_subscribed_groups("orders", connect) == frozenset()
    with pytest.raises(UsageUnknownError, match="GROUP_AUTHORIZATION_FAILED for group billing"):
        decode_subscribed_groups("orders", described({"billing": []}, code=30))
    cut_off = described({"billing": [subscription("orders")[:-12]]})
    with pytest.raises(DecodeError):
        decode_subscribed_groups("orders", cut_off)


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
