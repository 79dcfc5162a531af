"""Sizes and offsets of replicas, as brokers tell them; the answers are written by kio."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from kio.schema.describe_log_dirs.v1 import request as request_v1
from kio.schema.describe_log_dirs.v1 import response as response_v1
from kio.schema.describe_log_dirs.v4 import request as request_v4
from kio.schema.describe_log_dirs.v4 import response as response_v4
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from regent.model.log_dirs import LogDirectory, LogDirs
from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.protocol.api_versions import UnsupportedBrokerError, VersionRange
from regent.protocol.list_offsets import (
    EARLIEST,
    LATEST,
    ListedOffset,
    decode_list_offsets,
    encode_list_offsets,
)
from regent.protocol.log_dirs import chosen_version, decode_response, encode_request
from regent.protocol.primitives import DecodeError
from regent.protocol.replica_sizes import (
    decode_replica_sizes_response,
    encode_replica_sizes_request,
)
from tests.support.log_dirs_answers import answer, directory, partition
from tests.support.stub_broker import encode


def test_the_best_version_that_both_know_is_chosen() -> None:
    assert chosen_version(VersionRange(0, 4)) == 4
    assert chosen_version(VersionRange(1, 4)) == 4
    assert chosen_version(VersionRange(0, 3)) == 1
    assert chosen_version(VersionRange(0, 0)) == 0
    with pytest.raises(UnsupportedBrokerError):
        chosen_version(VersionRange(5, 9))
    with pytest.raises(UnsupportedBrokerError):
        chosen_version(None)


def test_everything_is_asked_for() -> None:
    assert encode_request(1) == encode(request_v1.DescribeLogDirsRequest(topics=None))
    assert encode_request(4) == encode(request_v4.DescribeLogDirsRequest(topics=None))


def test_sizes_of_all_directories_come_together_and_copies_within_the_broker_do_not_count() -> None:
    def directories(schema: Any, **more: Any) -> tuple[Any, Any]:
        return (
            directory(
                schema,
                "/a",
                ("orders", [partition(schema, 0, 10), partition(schema, 1, 20)]),
                ("users", [partition(schema, 0, 5, is_future=True)]),
                **more,
            ),
            directory(
                schema,
                "/b",
                ("orders", [partition(schema, 2, 30)]),
                ("users", [partition(schema, 0, 7)]),
                **more,
            ),
        )

    expected = {"orders": {0: 10, 1: 20, 2: 30}, "users": {0: 7}}
    old = decode_response(answer(response_v1, *directories(response_v1)), version=1)
    assert old == LogDirs(expected)
    volume = {"total_bytes": i64(1000), "usable_bytes": i64(400)}
    new = decode_response(
        answer(response_v4, *directories(response_v4, **volume), error_code=ErrorCode.none),
        version=4,
    )
    assert new == LogDirs(
        expected,
        capacity=2000,
        directories=(LogDirectory("/a", 1000, 35, 3), LogDirectory("/b", 1000, 37, 2)),
    )


def test_an_offline_directory_is_named_and_its_volume_does_not_count() -> None:
    found = decode_response(
        answer(
            response_v4,
            directory(response_v4, "/a", total_bytes=i64(1000), usable_bytes=i64(0)),
            directory(
                response_v4,
                "/b",
                error=ErrorCode.kafka_storage_error,
                total_bytes=i64(-1),
                usable_bytes=i64(-1),
            ),
            error_code=ErrorCode.none,
        ),
        version=4,
    )
    assert found == LogDirs({}, offline=("/b",), capacity=1000)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (answer(response_v1), 1),
        (answer(response_v4, error_code=ErrorCode.cluster_authorization_failed), 4),
    ],
)
def test_a_refusal_is_named(body: bytes, version: int) -> None:
    assert decode_response(body, version=version) == "CLUSTER_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("total", [-1, 0, 2**53, 2**63 - 2**30, 2**63 - 1])
def test_a_capacity_that_is_not_told_or_has_no_end_is_not_known(total: int) -> None:
    body = answer(
        response_v4,
        directory(response_v4, "/a", total_bytes=i64(total), usable_bytes=i64(total)),
        directory(response_v4, "/b", total_bytes=i64(1000), usable_bytes=i64(400)),
        error_code=ErrorCode.none,
    )
    assert decode_response(body, version=4) == LogDirs({}, capacity=None)


def test_an_answer_that_ends_early_is_refused() -> None:
    body = answer(response_v1, directory(response_v1, "/a", ("t", [partition(response_v1, 0, 1)])))
    for end in range(4, len(body)):
        with pytest.raises(DecodeError):
            decode_response(body[:end], version=1)


def tp(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(topic, partition)


def test_partitions_are_asked_for_by_topic() -> None:
    expected = request_v1.DescribeLogDirsRequest(
        topics=tuple(
            request_v1.DescribableLogDirTopic(
                topic=TopicName(name), partitions=tuple(map(i32, partitions))
            )
            for name, partitions in (("a", (0, 2)), ("b", (1,)))
        )
    )
    asked = frozenset({tp("b", 1), tp("a", 2), tp("a", 0)})
    assert encode_replica_sizes_request(asked) == encode(expected)


def test_bytes_of_replicas_in_all_directories_and_no_copies_between_them() -> None:
    v1 = response_v1
    body = answer(
        response_v1,
        directory(v1, "/data-0", ("a", [partition(v1, 0, 2**40), partition(v1, 2, 0)]), ("b", [])),
        directory(v1, "/data-1", error=ErrorCode.kafka_storage_error),
        directory(
            v1,
            "/data-2",
            ("a", [partition(v1, 0, 5, is_future=True)]),
            ("b", [partition(v1, 1, 9)]),
        ),
    )
    assert decode_replica_sizes_response(body) == ReplicaSizes(
        {tp("a", 0): 2**40, tp("a", 2): 0, tp("b", 1): 9}, ("/data-1",)
    )


def test_a_broker_that_lists_no_directory_does_not_tell_us() -> None:
    assert decode_replica_sizes_response(answer(response_v1)) is None


@pytest.mark.parametrize("length", [3, 9, 20])
def test_a_part_of_an_answer_is_none(length: int) -> None:
    body = answer(response_v1, directory(response_v1, "/a", ("a", [partition(response_v1, 0, 1)])))
    with pytest.raises(DecodeError):
        decode_replica_sizes_response(body[:length])


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def test_several_topics_are_asked_for_at_once() -> None:
    assert encode_list_offsets({"a": [0, 7], "bc": [1]}, at=LATEST) == b"".join(
        [
            struct.pack(">ii", -1, 2),
            *(text("a"), struct.pack(">i", 2), struct.pack(">iqiq", 0, -1, 7, -1)),
            *(text("bc"), struct.pack(">i", 1), struct.pack(">iq", 1, -1)),
        ]
    )
    assert encode_list_offsets({"a": [0]}, at=EARLIEST).endswith(struct.pack(">iq", 0, -2))


def test_errors_are_told_with_their_partitions() -> None:
    body = b"".join(
        [
            struct.pack(">i", 1),
            *(text("a"), struct.pack(">i", 2)),
            struct.pack(">ihqq", 0, 0, -1, 42),
            struct.pack(">ihqq", 7, 6, -1, -1),
        ]
    )
    listed = [ListedOffset("a", 0, 0, 42), ListedOffset("a", 7, 6, -1)]
    assert list(decode_list_offsets(body)) == listed
    with pytest.raises(DecodeError):
        list(decode_list_offsets(body[:-1]))
