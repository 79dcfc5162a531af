"""Decoding of answers: what kio writes is understood, and nothing else is."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.describe_log_dirs.v1 import request as log_dirs_request
from kio.schema.describe_log_dirs.v1 import response as response_v1
from kio.schema.errors import ErrorCode

from regent.model.partition import TopicPartition
from regent.protocol import leader_and_isr, response_errors, stop_replica, update_metadata
from regent.protocol.control_requests import (
    NO_PARTITIONS,
    BrokerList,
    ControlHeader,
    ControlResponse,
    DescribeLogDirsRequest,
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from regent.protocol.describe_log_dirs import (
    decode_describe_log_dirs_response,
    encode_describe_log_dirs,
)
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_RESPONSE
from regent.protocol.entities.stop_replica import STOP_REPLICA_RESPONSE
from regent.protocol.entities.update_metadata import UPDATE_METADATA_RESPONSE
from regent.protocol.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    error_name,
    is_stale_controller_epoch,
)
from regent.protocol.leader_and_isr import decode_leader_and_isr_response
from regent.protocol.primitives import DecodeError
from regent.protocol.stop_replica import decode_stop_replica_response
from regent.protocol.update_metadata import decode_update_metadata_response
from tests.support.examples import scaled_examples
from tests.support.log_dirs_answers import answer, directory, partition
from tests.support.stub_broker import encode

BROKER_ID = 3
IDS = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in ("a", "b", "t" * 126, "t" * 249)}
HEADER = ControlHeader(controller_id=7, controller_epoch=5, broker_id=BROKER_ID, broker_epoch=9)
EMPTY = LeaderAndIsrRequest(HEADER, {}, {}, IDS, {})
METADATA = UpdateMetadataRequest(HEADER, BrokerList({}), NO_PARTITIONS)

# The error codes are mostly zero, as they are in practice.
partition_codes = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(sorted(IDS)), st.integers(0, 200)),
    st.sampled_from([0, 0, 0, 0, 56, 11, -1]),
    max_size=30,
)
top_level_codes = st.sampled_from([0, 11, 77])


@pytest.mark.parametrize("version", leader_and_isr.VERSIONS)
@given(code=top_level_codes, codes=partition_codes)
def test_leader_and_isr(version: int, code: int, codes: Mapping[TopicPartition, int]) -> None:
    request, body = _leader_and_isr(version, code, codes)
    response = decode_leader_and_isr_response(request, body, version=version)
    assert response.broker_id == BROKER_ID
    assert response.error_code == code
    assert response.partition_errors == {tp: c for tp, c in codes.items() if c not in (0, 11)}
    assert response.partitions is request.partitions
    assert (response.controller_epoch, response.broker_epoch) == (5, 9)


@pytest.mark.parametrize("version", leader_and_isr.VERSIONS)
@scaled_examples(1 / 10)
@given(
    known=st.integers(0, 300),
    others=st.dictionaries(st.integers(0, 300), st.sampled_from([56, -1, 74]), max_size=3),
)
def test_known_partitions_no_errors(version: int, known: int, others: Mapping[int, int]) -> None:
    """After a failover nearly all of them: their leader epoch is that which the broker has. They
    come in the order of the broker's hash map, so topics alternate."""
    topics = sorted(IDS)
    codes = {TopicPartition(topics[n % len(topics)], n): 11 * (n % 3 > 0) for n in range(known)}
    errors = {TopicPartition(topics[n % len(topics)], n): code for n, code in others.items()}
    request, body = _leader_and_isr(version, 0, {**codes, **errors})
    response = decode_leader_and_isr_response(request, body, version=version)
    assert response.partition_errors == errors


@pytest.mark.parametrize("version", leader_and_isr.VERSIONS)
def test_ordinary_answers_are_read_fast(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one they cost as much as the failover itself."""
    topics = sorted(IDS)
    codes = {TopicPartition(topics[n % len(topics)], n): 11 * (n % 2) for n in range(2000)}
    request, body = _leader_and_isr(version, 0, codes)
    read = []

    def reading(function: Any) -> Any:
        def counting(*args: Any, **options: Any) -> Any:
            read.append(args)
            return function(*args, **options)

        return counting

    for name in ("read_string", "_unpack_partition_error"):
        monkeypatch.setattr(response_errors, name, reading(getattr(response_errors, name)))
    decode_leader_and_isr_response(request, body, version=version)
    assert len(read) < 200


@pytest.mark.parametrize("version", update_metadata.VERSIONS)
@given(code=top_level_codes)
def test_update_metadata(version: int, code: int) -> None:
    body = encode(UPDATE_METADATA_RESPONSE[version](error_code=ErrorCode(code)))
    response = decode_update_metadata_response(METADATA, body, version=version)
    assert (response.broker_id, response.error_code) == (BROKER_ID, code)
    assert (response.controller_epoch, response.broker_epoch) == (5, 9)


@pytest.mark.parametrize("version", stop_replica.VERSIONS)
@given(code=top_level_codes, codes=partition_codes)
def test_stop_replica(version: int, code: int, codes: Mapping[TopicPartition, int]) -> None:
    request, body = _stop_replica(version, code, codes)
    response = decode_stop_replica_response(request, body, version=version)
    assert response.error_code == code
    assert response.partition_errors == {tp: c for tp, c in codes.items() if c}
    assert response.partitions is request.partitions
    assert (response.controller_epoch, response.broker_epoch) == (5, 9)


@pytest.mark.parametrize("version", [1, 4, 7])
@given(codes=partition_codes, data=st.data())
def test_a_damaged_answer_is_refused(
    version: int, codes: Mapping[TopicPartition, int], data: st.DataObject
) -> None:
    """Cut off anywhere, or followed by anything: never an exception of another kind."""
    request, body = _leader_and_isr(version, 0, codes)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]
    for damaged in (cut, body + b"\x00"):
        with pytest.raises(DecodeError):
            decode_leader_and_isr_response(request, damaged, version=version)


@given(version=st.sampled_from([1, 4, 7]), body=st.binary(max_size=200))
def test_garbage_is_refused_or_makes_sense(version: int, body: bytes) -> None:
    request, _ = _leader_and_isr(version, 0, {})
    for decode in (
        lambda: decode_leader_and_isr_response(request, body, version=version),
        lambda: decode_stop_replica_response(
            StopReplicaRequest(HEADER, {}), body, version=min(version, 4)
        ),
        lambda: decode_update_metadata_response(METADATA, body, version=max(version, 4)),
    ):
        try:
            decode()
        except DecodeError:
            continue


@pytest.mark.parametrize("name", ["x", "t" * 126, "t" * 127, "t" * 249])
def test_tagged_fields_of_a_newer_broker_are_skipped(name: str) -> None:
    """KIP-482: unknown tagged fields are legal in every structure of a flexible version."""
    entry = (
        leader_and_isr_name(name) + (5).to_bytes(4, "big") + b"\x00\x38" + b"\x01\x09\x02\xab\xcd"
    )
    body = b"\x00\x00" + b"\x02" + entry + b"\x01\x00\x00"
    request = EMPTY
    response = decode_leader_and_isr_response(request, body, version=4)
    assert response.partition_errors == {TopicPartition(name, 5): 56}


def test_errors_of_topics_without_an_id_are_told_only_if_that_is_certain() -> None:
    for topics, expected in ((["a"], {TopicPartition("a", 0): 56}), (["a", "b"], {})):
        wanted = {TopicPartition(topic, 0): False for topic in topics}
        request = msgspec.structs.replace(EMPTY, topic_ids={}, partitions=wanted)
        _, body = _leader_and_isr(5, 0, {TopicPartition("a", 0): 56}, ids={"a": None})
        response = decode_leader_and_isr_response(request, body, version=5)
        assert response.partition_errors == expected


def test_errors_of_an_id_that_was_not_asked_about_are_left_out() -> None:
    _, body = _leader_and_isr(7, 0, {TopicPartition("a", 0): 56, TopicPartition("b", 1): 56})
    request = msgspec.structs.replace(EMPTY, partitions={TopicPartition("b", 1): True})
    response = decode_leader_and_isr_response(request, body, version=7)
    assert response.partition_errors == {TopicPartition("b", 1): 56}


def test_only_the_top_level_code_dethrones_the_controller() -> None:
    def response(code: int, partition_code: int) -> ControlResponse:
        request, body = _leader_and_isr(4, code, {TopicPartition("a", 0): partition_code})
        return decode_leader_and_isr_response(request, body, version=4)

    assert is_stale_controller_epoch(response(11, 0))
    assert not is_stale_controller_epoch(response(0, 11))


def test_error_names() -> None:
    assert error_name(11) == "STALE_CONTROLLER_EPOCH"
    assert error_name(0) == "NONE"
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(29999) == "29999"


def leader_and_isr_name(name: str) -> bytes:
    length = len(name) + 1
    prefix = bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7])
    return prefix + name.encode()


def _leader_and_isr(
    version: int,
    code: int,
    codes: Mapping[TopicPartition, int],
    *,
    ids: Mapping[str, uuid.UUID | None] = IDS,
) -> tuple[LeaderAndIsrRequest, bytes]:
    request = msgspec.structs.replace(EMPTY, partitions=dict.fromkeys(codes, False))
    message = LEADER_AND_ISR_RESPONSE
    error = message.nested("LeaderAndIsrPartitionError", version)
    if version < 5:
        errors = tuple(
            error(topic_name=tp.topic, partition_index=tp.partition, error_code=ErrorCode(c))
            for tp, c in codes.items()
        )
        entity = message[version](error_code=ErrorCode(code), partition_errors=errors)
        return request, encode(entity)
    topic_error = message.nested("LeaderAndIsrTopicError", version)
    topics: dict[str, list[Any]] = {}
    for tp, c in codes.items():
        topics.setdefault(tp.topic, []).append(
            error(partition_index=tp.partition, error_code=ErrorCode(c))
        )
    entity = message[version](
        error_code=ErrorCode(code),
        topics=tuple(
            topic_error(topic_id=ids[topic], partition_errors=tuple(errors))
            for topic, errors in topics.items()
        ),
    )
    return request, encode(entity)


def _stop_replica(
    version: int, code: int, codes: Mapping[TopicPartition, int]
) -> tuple[StopReplicaRequest, bytes]:
    message = STOP_REPLICA_RESPONSE
    error = message.nested("StopReplicaPartitionError", version) if codes else None
    entity = message[version](
        error_code=ErrorCode(code),
        partition_errors=tuple(
            error(topic_name=tp.topic, partition_index=tp.partition, error_code=ErrorCode(c))
            for tp, c in codes.items()
            if error is not None
        ),
    )
    stops = dict.fromkeys(codes, StopReplicaPartition(0, True))
    return StopReplicaRequest(HEADER, stops), encode(entity)


LOG_DIRS = DescribeLogDirsRequest(HEADER)


def _log_dirs(codes: Mapping[str, int], *, topics: int = 0) -> bytes:
    replica = partition(response_v1, 7, 2**40, is_future=True)
    directories = (
        directory(response_v1, path, *[("a", [replica] * 2)] * topics, error=ErrorCode(code))
        for path, code in codes.items()
    )
    return answer(response_v1, *directories)


@given(
    codes=st.dictionaries(st.text(max_size=9), st.sampled_from([0, 56]), min_size=1, max_size=3),
    topics=st.integers(0, 2),
)
def test_log_dirs_have_errors_and_epochs(codes: Mapping[str, int], topics: int) -> None:
    response = decode_describe_log_dirs_response(LOG_DIRS, _log_dirs(codes, topics=topics))
    assert response.log_dirs == codes
    assert response.error_code == 0
    assert (response.broker_id, response.controller_epoch, response.broker_epoch) == (3, 5, 9)


@pytest.mark.parametrize(("lists_replicas", "topics"), [(True, None), (False, ())])
def test_all_topics_are_asked_about_or_none(lists_replicas: bool, topics: tuple[()] | None) -> None:
    request = DescribeLogDirsRequest(HEADER, lists_replicas)
    expected = encode(log_dirs_request.DescribeLogDirsRequest(topics=topics))
    assert encode_describe_log_dirs(request) == expected


def test_replicas_are_listed_with_their_bytes_if_they_were_asked_for() -> None:
    v1 = response_v1
    moving = [partition(v1, number, 7, is_future=True) for number in range(3)]
    body = answer(
        v1,
        directory(v1, "/data-0", ("a", [partition(v1, 0, 2**40), partition(v1, 1, 0)]), ("b", [])),
        directory(v1, "/data-1", ("a", moving), ("c", [partition(v1, 0, 5)])),
    )
    asked = DescribeLogDirsRequest(HEADER, lists_replicas=True)
    response = decode_describe_log_dirs_response(asked, body)
    assert response.replicas == {"a": {0: 2**40, 1: 0}, "b": {}, "c": {0: 5}}
    assert decode_describe_log_dirs_response(LOG_DIRS, body).replicas is None
    assert decode_describe_log_dirs_response(asked, _log_dirs({})).replicas is None


def test_a_broker_that_lists_no_log_dir_does_not_say_anything() -> None:
    response = decode_describe_log_dirs_response(LOG_DIRS, _log_dirs({}))
    assert response.error_code == CLUSTER_AUTHORIZATION_FAILED


@given(cut=st.integers(1, 200))
def test_log_dirs_that_end_early_are_malformed(cut: int) -> None:
    body = _log_dirs({"/data-0": 0, "/data-1": 56}, topics=1)
    with pytest.raises(DecodeError):
        decode_describe_log_dirs_response(LOG_DIRS, body[: -min(cut, len(body))])
