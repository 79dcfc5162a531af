"""Answers to DescribeLogDirs, as kio writes them."""

from __future__ import annotations

import datetime
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from tests.support.stub_broker import encode

_NO_THROTTLE = i32Timedelta.parse(datetime.timedelta(0))


def partition(schema: Any, number: int, size: int, *, is_future: bool = False) -> Any:
    """A replica in a directory; the schema is kio's module of a version of the answer."""
    return schema.DescribeLogDirsPartition(
        partition_index=i32(number),
        partition_size=i64(size),
        offset_lag=i64(3),
        is_future_key=is_future,
    )


def directory(
    schema: Any,
    path: str,
    *topics: tuple[str, list[Any]],
    error: ErrorCode = ErrorCode.none,
    **more: Any,
) -> Any:
    """A directory with the replicas of each topic."""
    return schema.DescribeLogDirsResult(
        error_code=error,
        log_dir=path,
        topics=tuple(
            schema.DescribeLogDirsTopic(name=TopicName(name), partitions=tuple(partitions))
            for name, partitions in topics
        ),
        **more,
    )


def answer(schema: Any, *directories: Any, **more: Any) -> bytes:
    """The whole answer."""
    return encode(
        schema.DescribeLogDirsResponse(throttle_time=_NO_THROTTLE, results=directories, **more)
    )
