"""DescribeLogDirs about some partitions, byte by byte as kio has it."""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping
from typing import Any

import pytest
from kio.schema.describe_log_dirs.v1 import request as log_dirs_request
from kio.schema.describe_log_dirs.v1 import response as log_dirs_response
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.serial import entity_writer
from kio.static.primitive import i32, i32Timedelta, i64

from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.protocol.primitives import DecodeError
from regent.protocol.replica_sizes import (
    decode_replica_sizes_response,
    encode_replica_sizes_request,
)


def encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def tp(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(topic, partition)


def topic(name: str, sizes: Mapping[int, int], *, is_future: bool = False) -> Any:
    return log_dirs_response.DescribeLogDirsTopic(
        name=TopicName(name),
        partitions=tuple(
            log_dirs_response.DescribeLogDirsPartition(
                partition_index=i32(partition),
                partition_size=i64(size),
                offset_lag=i64(7),
                is_future_key=is_future,
            )
            for partition, size in sizes.items()
        ),
    )


def answer(*directories: tuple[str, int, tuple[Any, ...]]) -> bytes:
    return encode(
        log_dirs_response.DescribeLogDirsResponse(
            throttle_time=i32Timedelta.parse(datetime.timedelta(0)),
            results=tuple(
                log_dirs_response.DescribeLogDirsResult(
                    error_code=ErrorCode(code), log_dir=path, topics=topics
                )
                for path, code, topics in directories
            ),
        )
    )


def test_partitions_are_asked_for_by_topic() -> None:
    expected = log_dirs_request.DescribeLogDirsRequest(
        topics=tuple(
            log_dirs_request.DescribableLogDirTopic(
                topic=TopicName(name), partitions=tuple(map(i32, partitions))
            )
            for name, partitions in (("a", (0, 2)), ("b", (1,)))
        )
    )
    asked = frozenset({tp("b", 1), tp("a", 2), tp("a", 0)})
    assert encode_replica_sizes_request(asked) == encode(expected)


def test_bytes_of_replicas_in_all_directories_and_no_copies_between_them() -> None:
    body = answer(
        ("/data-0", 0, (topic("a", {0: 2**40, 2: 0}), topic("b", {}))),
        ("/data-1", 56, ()),
        ("/data-2", 0, (topic("a", {0: 5}, is_future=True), topic("b", {1: 9}))),
    )
    assert decode_replica_sizes_response(body) == ReplicaSizes(
        {tp("a", 0): 2**40, tp("a", 2): 0, tp("b", 1): 9}, ("/data-1",)
    )


def test_a_broker_that_lists_no_directory_does_not_tell_us() -> None:
    assert decode_replica_sizes_response(answer()) is None


@pytest.mark.parametrize("length", [3, 9, 20])
def test_a_part_of_an_answer_is_none(length: int) -> None:
    body = answer(("/data-0", 0, (topic("a", {0: 1}),)))
    with pytest.raises(DecodeError):
        decode_replica_sizes_response(body[:length])
