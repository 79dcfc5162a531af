"""What has to be known of requests that are passed on, and which these are."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema

from regent.protocol.framing import request_header
from regent.protocol.kafka_api_versions import API_VERSIONS
from regent.protocol.passed_on import PASSED_ON, common_versions, has_no_answer
from regent.protocol.primitives import DecodeError
from regent.protocol.served_apis import DESCRIBE_CONFIGS, METADATA
from regent.protocol.server_codec import ServerCodec
from tests.support.kafka_client import request_frame
from tests.support.served_requests import make
from tests.support.stub_broker import encode

ranges = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair)))
brokers = st.lists(st.dictionaries(st.integers(0, 5), ranges), max_size=4)


@given(brokers)
def test_common_version_is_known_by_all(supported: list[Mapping[int, tuple[int, int]]]) -> None:
    common = common_versions(supported, range(6))
    for key in range(6):
        everybodys = {
            version
            for version in range(21)
            if supported
            and all(key in each and each[key][0] <= version <= each[key][1] for each in supported)
        }
        found = common.get(key)
        assert set() == everybodys if found is None else set(range(found[0], found[1] + 1))


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("transactional_id", [None, "", "t" * 200])
@pytest.mark.parametrize("version", range(3, 12))
def test_produce_without_acks(version: int, transactional_id: str | None, acks: int) -> None:
    kind = load_request_schema(0, version)
    fields: dict[str, Any] = {"transactionalId": transactional_id, "acks": acks}
    fields |= {"timeoutMs": 1, "topicData": []}
    entity = make(kind, fields)
    head = struct.pack(">hhih", 0, version, 5, 4) + b"test" + (b"\0" if version >= 9 else b"")
    frame = head + encode(entity)
    assert has_no_answer(request_header(frame), frame) is (acks == 0)


@given(st.integers(0, 12), st.binary(max_size=60))
def test_a_malformed_produce_request_is_a_decode_error(version: int, rest: bytes) -> None:
    frame = struct.pack(">hhi", 0, version, 5) + rest
    with contextlib.suppress(DecodeError):
        assert has_no_answer(request_header(frame), frame) in (True, False)


@given(st.binary(max_size=20))
def test_a_header_is_read_or_a_decode_error(frame: bytes) -> None:
    if len(frame) < 8:
        with pytest.raises(DecodeError):
            request_header(frame)
    else:
        header = request_header(frame)
        assert struct.pack(">hhi", *header[:3]) == frame[:8]


def test_every_api_of_clients_that_brokers_have_is_passed_on_or_answered_here() -> None:
    """A client asks any node for them; one that is not listed would be fatal to it."""
    of_brokers = {4, 5, 6, 7, 27, 56, 58, 67}
    of_the_controller = {19, 20, 37, 43, 45, 46, 51, 57}
    of_a_node = {16, 17, 18, 34, 35, 36, 66}
    of_no_broker_with_zookeeper = {52, 53, 54, 55, 59, 62, 63, 64, 70, 71, 72, 73, 74, 75}
    known = {key for versions in API_VERSIONS.values() for key in versions}
    left = known - PASSED_ON.keys() - of_brokers - of_the_controller - of_a_node
    assert left <= of_no_broker_with_zookeeper


@pytest.mark.parametrize("version", METADATA.requests)
def test_a_request_to_a_broker_is_read_as_what_was_meant(version: int) -> None:
    codec = ServerCodec({METADATA.key: METADATA})
    fields: dict[str, Any] = {"topics": []}
    if version >= 8:
        fields["includeTopicAuthorizedOperations"] = True
    if 8 <= version <= 10:
        fields["includeClusterAuthorizedOperations"] = False
    request = codec.decode(request_frame(METADATA, version, 77, fields))
    assert codec.decode(codec.encode_request(request.header, request.entity)) == request


@pytest.mark.parametrize("version", DESCRIBE_CONFIGS.responses)
def test_an_answer_of_a_broker_is_read_as_ours_would_be(version: int) -> None:
    codec = ServerCodec({DESCRIBE_CONFIGS.key: DESCRIBE_CONFIGS})
    fields: dict[str, Any] = {"resources": []}
    if version >= 1:
        fields["includeSynonyms"] = False
    header = codec.decode(request_frame(DESCRIBE_CONFIGS, version, 77, fields)).header
    kind = DESCRIBE_CONFIGS.responses[version]
    body = b"\0\0\0\7" + (b"\1\0" if version >= 4 else b"\0\0\0\0")
    frame = struct.pack(">i", 77) + (b"\0" if version >= 4 else b"") + body
    answer = codec.decode_answer(header, frame)
    assert type(answer) is kind
    assert codec.encode(header, answer)[4:] == frame
    for wrong in (frame[:-1], frame + b"\0", b"\0\0\0\1" + frame[4:]):
        with pytest.raises(DecodeError):
            codec.decode_answer(header, wrong)
