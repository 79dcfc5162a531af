"""What stub brokers ask the controller, and how they take its answers."""

from __future__ import annotations

import datetime
import io
import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from benchmarks.asking.alter_partition import IsrChange, IsrResult, decode, encode, require_made
from benchmarks.errors import BenchmarkError
from regent.protocol.entities.alter_partition import (
    ALTER_PARTITION_REQUEST,
    ALTER_PARTITION_RESPONSE,
)

VERSION = 3
TOPIC, OTHER = uuid.UUID(int=7), uuid.UUID(int=8)
EPOCHS = {1: 101, 2: 102, 3: 103}
CHANGES = {
    (TOPIC.bytes, 0): IsrChange(4, 9, (1, 2)),
    (TOPIC.bytes, 5): IsrChange(0, 0, (1,)),
    (OTHER.bytes, 1): IsrChange(2, 1, (1, 2, 3)),
}


def answer_to(request: Any) -> bytes:
    """What a controller answers that makes every change."""
    topic_type = ALTER_PARTITION_RESPONSE.nested("TopicData", VERSION)
    partition_type = ALTER_PARTITION_RESPONSE.nested("PartitionData", VERSION)
    response = ALTER_PARTITION_RESPONSE[VERSION](
        throttle_time=datetime.timedelta(0),
        error_code=ErrorCode.none,
        topics=tuple(
            topic_type(
                topic_id=topic.topic_id,
                partitions=tuple(
                    partition_type(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.none,
                        leader_id=request.broker_id,
                        leader_epoch=partition.leader_epoch,
                        isr=tuple(m.broker_id for m in partition.new_isr_with_epochs),
                        leader_recovery_state=0,
                        partition_epoch=partition.partition_epoch + 1,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
    buffer = io.BytesIO()
    entity_writer(type(response))(buffer, response)
    return buffer.getvalue()


def read_request(body: bytes) -> Any:
    request, size = entity_reader(ALTER_PARTITION_REQUEST[VERSION])(body, 0)
    assert size == len(body)
    return request


def test_an_answer_decodes_as_the_declared_entity() -> None:
    results = decode(answer_to(read_request(encode(1, CHANGES, EPOCHS).body)))
    assert results == {
        key: IsrResult(0, 1, change.leader_epoch, change.isr, change.partition_epoch + 1)
        for key, change in CHANGES.items()
    }
    require_made(1, CHANGES, results)


def test_changed_answer_gives_no_figure() -> None:
    results = decode(answer_to(read_request(encode(1, CHANGES, EPOCHS).body)))
    key = next(iter(CHANGES))
    with pytest.raises(BenchmarkError, match="was answered with"):
        require_made(1, CHANGES, {**results, key: results[key]._replace(isr=(1, 2, 3))})
