"""What stub brokers ask the controller, and how they take its answers."""

from __future__ import annotations

import datetime
import io
import socket
import struct
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from benchmarks.asking.alter_partition import IsrChange, IsrResult, decode, encode, require_made
from benchmarks.asking.connection import ControllerConnection, find_controller
from benchmarks.asking.leaders import Leader, LedPartition, ask_for_changes
from benchmarks.errors import BenchmarkError
from benchmarks.stub.requests import Address
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.entities.alter_partition import (
    ALTER_PARTITION_REQUEST,
    ALTER_PARTITION_RESPONSE,
)
from tests.unit.benchmarks.exchanges import ELECTION, batch, sent

VERSION = 3
TOPIC, OTHER = uuid.UUID(int=7), uuid.UUID(int=8)
EPOCHS = {1: 101, 2: 102, 3: 103}
CHANGES = {
    (TOPIC.bytes, 0): IsrChange(4, 9, (1, 2)),
    (TOPIC.bytes, 5): IsrChange(0, 0, (1,)),
    (OTHER.bytes, 1): IsrChange(2, 1, (1, 2, 3)),
}


def answer_to(request: Any, error: ErrorCode = ErrorCode.none) -> bytes:
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
                        error_code=error,
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


def test_changes_are_asked_for_as_the_declared_entity() -> None:
    request = read_request(encode(1, CHANGES, EPOCHS).body)
    assert (request.broker_id, request.broker_epoch) == (1, 101)
    asked = {
        (topic.topic_id.bytes, p.partition_index): IsrChange(
            p.leader_epoch, p.partition_epoch, tuple(m.broker_id for m in p.new_isr_with_epochs)
        )
        for topic in request.topics
        for p in topic.partitions
    }
    assert asked == CHANGES
    members = [m for t in request.topics for p in t.partitions for m in p.new_isr_with_epochs]
    assert all(m.broker_epoch == EPOCHS[m.broker_id] for m in members)


def test_an_answer_decodes_as_the_declared_entity() -> None:
    results = decode(answer_to(read_request(encode(1, CHANGES, EPOCHS).body)))
    assert results == {
        key: IsrResult(0, 1, change.leader_epoch, change.isr, change.partition_epoch + 1)
        for key, change in CHANGES.items()
    }
    require_made(1, CHANGES, results)


@pytest.mark.parametrize(
    "wrong",
    [
        {"error": 42},
        {"leader": 2},
        {"leader_epoch": 5},
        {"isr": (1, 2, 3)},
        {"partition_epoch": 9},
    ],
)
def test_a_change_that_was_not_made_as_asked_gives_no_figure(wrong: dict[str, Any]) -> None:
    results = decode(answer_to(read_request(encode(1, CHANGES, EPOCHS).body)))
    key = next(iter(CHANGES))
    with pytest.raises(BenchmarkError, match="was answered with"):
        require_made(1, CHANGES, {**results, key: results[key]._replace(**wrong)})
    with pytest.raises(BenchmarkError, match="3 ISR changes have 2 results"):
        require_made(1, CHANGES, {k: result for k, result in results.items() if k != key})


def test_a_request_that_was_refused_as_a_whole_gives_no_figure() -> None:
    with pytest.raises(BenchmarkError, match="error 41"):
        decode(struct.pack(">ih", 0, 41) + b"\1\0")


def test_a_broker_finds_the_controller_in_what_it_was_sent_last() -> None:
    tp = TopicPartition("t", 0)
    requests = batch({tp: (LeaderAndIsr(1, 4, (1, 2), 3, 9), ReplicaAssignment((1, 2)))})
    exchanges = sent(requests, answered_at=10)
    with pytest.raises(BenchmarkError, match="not sent the address"):
        find_controller(exchanges, ELECTION, 2)
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "controller.example", 9095)
    announced = msgspec.structs.replace(
        requests, announced=Broker(ELECTION.controller_id, -1, (endpoint,))
    )
    exchanges += sent(announced, answered_at=20)
    assert find_controller(exchanges, ELECTION, 2) == Address("controller.example", 9095)
    with pytest.raises(BenchmarkError, match="sent no UpdateMetadata"):
        find_controller(exchanges, ELECTION, 4)
    with pytest.raises(BenchmarkError, match="knows controller 7, epoch 3"):
        find_controller(exchanges, ELECTION._replace(epoch=4), 2)


@contextmanager
def controller(answer: Callable[[Any], bytes]) -> Iterator[tuple[Address, list[Any]]]:
    """Answers the requests of one connection; its address, and what it was asked."""
    asked: list[Any] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size, "big"))
                client_id_length = int.from_bytes(frame[8:10], "big")
                asked.append(read_request(frame[11 + client_id_length :]))
                body = frame[4:8] + b"\0" + answer(asked[-1])
                connection.sendall(len(body).to_bytes(4, "big") + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield Address(*listener.getsockname()), asked
    thread.join()


def led(index: int) -> LedPartition:
    return LedPartition(
        TopicPartition("t", index), (TOPIC.bytes, index), 1, (1, 2, 3), 4, (1, 2, 3), 9
    )


def test_a_leader_asks_for_one_change_of_a_partition_at_a_time() -> None:
    partitions = [led(0), led(1)]
    with controller(answer_to) as (address, asked):
        connection = ControllerConnection(1, address, timeout_s=30)
        load = ask_for_changes(
            [Leader(1, connection)], partitions * 3, EPOCHS, rate=10_000, timeout_s=30
        )
        connection.close()
    assert len(load.changes) == 6
    assert len(load.requests) == len(asked) == 3
    assert [
        {tuple(m.broker_id for m in p.new_isr_with_epochs) for p in request.topics[0].partitions}
        for request in asked
    ] == [{(1, 2)}, {(1, 2, 3)}, {(1, 2)}]
    assert [(p.isr, p.partition_epoch) for p in partitions] == [((1, 2), 12)] * 2


def test_a_refused_change_ends_the_measurement() -> None:
    with controller(lambda request: answer_to(request, ErrorCode.invalid_request)) as (address, _):
        connection = ControllerConnection(1, address, timeout_s=30)
        with pytest.raises(BenchmarkError, match="was answered with"):
            ask_for_changes([Leader(1, connection)], [led(0)], EPOCHS, rate=1_000, timeout_s=30)
        connection.close()
