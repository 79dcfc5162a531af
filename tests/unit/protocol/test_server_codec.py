"""The server's codec against frames that Kafka's own classes made, and against any other bytes."""

from __future__ import annotations

import datetime
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v9.request import MetadataRequest, MetadataRequestTopic
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.schema.types import TopicName

from regent.protocol.framing import RequestHeader
from regent.protocol.primitives import DecodeError, uvarint
from regent.protocol.served_apis import (
    ALTER_PARTITION,
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    DELETE_TOPICS,
    ELECT_LEADERS,
    MAX_ELEMENTS,
    METADATA,
    SASL_HANDSHAKE,
    Api,
    table_of,
)
from regent.protocol.server_codec import EncodeError, ServerCodec, UnsupportedRequestError
from tests.support.examples import scaled_examples
from tests.support.served_requests import (
    ALL_APIS,
    CLIENT_ID,
    CORRELATION_ID,
    GOLDEN,
    GoldenFrame,
    make,
)
from tests.support.stub_broker import encode

CODEC = ServerCodec(ALL_APIS)
REQUESTS = [each for each in GOLDEN if each.kind == "request"]
RESPONSES = [each for each in GOLDEN if each.kind == "response"]


def _header(api: Api, version: int) -> RequestHeader:
    return RequestHeader(api.key, version, CORRELATION_ID, CLIENT_ID)


def _name(golden: GoldenFrame) -> str:
    return f"{golden.release}-{golden.api.name}-{golden.version}-{golden.case}"


@pytest.mark.parametrize("golden", REQUESTS, ids=_name)
def test_a_request_of_kafka_is_read(golden: GoldenFrame) -> None:
    request = CODEC.decode(golden.frame)
    assert request.entity == golden.entity
    without_client_id = (golden.api, golden.version) == (CONTROLLED_SHUTDOWN, 0)
    header = _header(golden.api, golden.version)
    assert request.header == (header._replace(client_id=None) if without_client_id else header)


@pytest.mark.parametrize("golden", RESPONSES, ids=_name)
def test_an_answer_is_that_of_kafka(golden: GoldenFrame) -> None:
    frame = CODEC.encode(_header(golden.api, golden.version), golden.entity)
    assert frame[4:].hex() == golden.frame.hex()
    assert struct.unpack(">i", frame[:4]) == (len(golden.frame),)


def test_every_version_is_covered() -> None:
    covered = {(each.api.name, each.kind, each.version) for each in GOLDEN}
    assert covered == {
        (api.name, kind, version)
        for api in ALL_APIS.values()
        if api is not METADATA
        for kind in ("request", "response")
        for version in api.requests
    }


@pytest.mark.parametrize(
    ("api_key", "version"), [(56, 4), (56, -1), (18, 5), (999, 0), (-1, 0), (7, 32767), (0, 0)]
)
def test_what_is_not_served_is_named(api_key: int, version: int) -> None:
    frame = struct.pack(">hhi", api_key, version, 7) + b"whatever follows"
    with pytest.raises(UnsupportedRequestError, match=f"version {version} of API {api_key} "):
        CODEC.decode(frame)


def test_an_api_that_is_known_and_not_served_is_refused() -> None:
    codec = ServerCodec(table_of((API_VERSIONS,)))
    with pytest.raises(UnsupportedRequestError):
        codec.decode(REQUESTS[0].frame)


def test_apis_are_listed_in_the_order_of_their_keys() -> None:
    table = table_of((ALTER_PARTITION, METADATA, API_VERSIONS))
    assert list(table) == [3, 18, 56]


@pytest.mark.parametrize("golden", REQUESTS, ids=_name)
def test_cut_off_request_is_refused_and_excess_ignored(golden: GoldenFrame) -> None:
    """Brokers do so, and librdkafka relies on it."""
    for end in range(len(golden.frame)):
        with pytest.raises(DecodeError):
            CODEC.decode(golden.frame[:end])
    assert CODEC.decode(golden.frame + b"\0") == CODEC.decode(golden.frame)


@scaled_examples(3)
@given(data=st.data())
def test_changed_frame_is_a_request_or_a_decode_error(data: st.DataObject) -> None:
    frame = bytearray(data.draw(st.sampled_from(REQUESTS)).frame)
    edits = st.tuples(st.integers(0, len(frame) - 1), st.integers(0, 255))
    for index, value in data.draw(st.lists(edits, min_size=1, max_size=4)):
        frame[index] = value
    _decode_anything(bytes(frame))


@scaled_examples(3)
@given(
    api=st.sampled_from(list(ALL_APIS.values())),
    data=st.data(),
    rest=st.binary(max_size=200),
)
def test_any_bytes_are_safe(api: Api, data: st.DataObject, rest: bytes) -> None:
    version = data.draw(st.sampled_from(sorted(api.requests)))
    _decode_anything(struct.pack(">hhi", api.key, version, 1) + rest)
    _decode_anything(rest)


def _decode_anything(frame: bytes) -> None:
    try:
        request = CODEC.decode(frame)
    except DecodeError:
        return
    assert (
        type(request.entity)
        is ALL_APIS[request.header.api_key].requests[request.header.api_version]
    )


def test_a_small_frame_cannot_claim_much_memory() -> None:
    """In a process of its own, which may not have more than a gigabyte: kio's reader aborts it."""
    script = """
import resource, struct, sys
from regent.protocol.primitives import DecodeError, uvarint
from regent.protocol.server_codec import ServerCodec
from tests.support.served_requests import ALL_APIS

codec = ServerCodec(ALL_APIS)
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
for length in (2**31 - 1, 2**32 - 1, 2**24):
    for api in ALL_APIS.values():
        for version in api.requests:
            head = struct.pack(">hhi", api.key, version, 1) + struct.pack(">h", -1)
            for before in (b"", bytes(1), bytes(4), bytes(12), bytes(13), bytes(40)):
                for size in (uvarint(length), struct.pack(">I", length)):
                    try:
                        codec.decode(head + before + size + bytes(8))
                    except DecodeError:
                        pass
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_tagged_fields_are_read_and_unknown_ones_skipped() -> None:
    entity = make(
        API_VERSIONS.requests[3], {"clientSoftwareName": "a", "clientSoftwareVersion": "b"}
    )
    raw = encode(entity)
    unknown = raw[:-1] + uvarint(2) + uvarint(9) + uvarint(3) + b"abc" + uvarint(77) + uvarint(0)
    head = struct.pack(">hhih", API_VERSIONS.key, 3, 1, -1) + b"\0"
    assert CODEC.decode(head + unknown).entity == entity
    request = CODEC.decode(head + raw)
    assert request.entity == entity
    assert request.header.client_id is None


def test_null_is_refused_where_it_is_no_value_and_kept_where_it_is() -> None:
    head = struct.pack(">hhih", METADATA.key, 9, 1, -1) + b"\0"
    flags = b"\1\0\0"
    everything = CODEC.decode(head + b"\0" + flags + b"\0").entity
    assert everything == MetadataRequest(
        topics=None,
        allow_auto_topic_creation=True,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    named = CODEC.decode(head + b"\2\2t\0" + flags + b"\0").entity
    assert named.topics == (MetadataRequestTopic(name=TopicName("t")),)
    with pytest.raises(DecodeError, match="name is null"):
        CODEC.decode(head + b"\2\0\0" + flags + b"\0")
    with pytest.raises(DecodeError, match="topics is null"):
        CODEC.decode(struct.pack(">hhih", 56, 2, 1, -1) + b"\0" + bytes(12) + b"\0\0")


def _handshake(mechanisms: object) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=mechanisms)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "entity",
    [
        _handshake(("x" * 40_000,)),
        _handshake((3,)),
        _handshake(None),
        _handshake(["a list"]),
        make(SASL_HANDSHAKE.responses[0], {"errorCode": 0, "mechanisms": []}),
        make(API_VERSIONS.responses[0], {"errorCode": 0, "apiKeys": []}),
        SASL_HANDSHAKE.requests[1](mechanism="PLAIN"),
        datetime.timedelta(0),
        None,
    ],
    ids=repr,
)
def test_a_doubtful_answer_is_not_encoded(entity: object) -> None:
    with pytest.raises(EncodeError):
        CODEC.encode(_header(SASL_HANDSHAKE, 1), entity)


def _deletion(count: int) -> bytes:
    """DeleteTopics, version 1, of that many topics."""
    head = struct.pack(">hhih", DELETE_TOPICS.key, 1, CORRELATION_ID, -1)
    return head + struct.pack(">i", count) + b"\0\1t" * count + struct.pack(">i", 1000)


def test_a_request_that_is_no_brokers_names_so_many_things_and_no_more() -> None:
    """Each costs the controller's loop, and the process a hundred times its bytes."""
    assert len(CODEC.decode(_deletion(MAX_ELEMENTS)).entity.topic_names) == MAX_ELEMENTS
    with pytest.raises(DecodeError, match="too many"):
        CODEC.decode(_deletion(MAX_ELEMENTS + 1))


def test_the_arrays_of_a_request_count_together() -> None:
    """ElectLeaders, version 0: the partitions of two topics."""
    half = MAX_ELEMENTS // 2
    topic = struct.pack(">h1si", 1, b"t", half) + b"\0\0\0\1" * half
    head = struct.pack(">hhih", ELECT_LEADERS.key, 0, CORRELATION_ID, -1)
    with pytest.raises(DecodeError, match="too many"):
        CODEC.decode(head + struct.pack(">i", 2) + topic * 2 + struct.pack(">i", 1000))


def test_tagged_fields_count_as_well() -> None:
    """ApiVersions, version 3, which anybody may ask: each takes 70 times its two bytes."""
    head = struct.pack(">hhih", API_VERSIONS.key, 3, CORRELATION_ID, -1) + b"\0" + b"\2a\2b"
    tags = b"\x63\0"
    assert CODEC.decode(head + uvarint(MAX_ELEMENTS) + tags * MAX_ELEMENTS)
    with pytest.raises(DecodeError, match="too many"):
        CODEC.decode(head + uvarint(MAX_ELEMENTS + 1) + tags * (MAX_ELEMENTS + 1))


def test_an_isr_change_of_a_broker_may_name_more() -> None:
    isr = uvarint(MAX_ELEMENTS + 2) + b"\0\0\0\1" * (MAX_ELEMENTS + 1)
    partition = struct.pack(">ii", 0, 0) + isr + struct.pack(">i", 0) + b"\0"
    topic = b"\2t" + b"\2" + partition + b"\0"
    head = struct.pack(">hhih", ALTER_PARTITION.key, 0, CORRELATION_ID, -1) + b"\0"
    frame = head + struct.pack(">iq", 1, 1) + b"\2" + topic + b"\0"
    (found,) = CODEC.decode(frame).entity.topics
    assert len(found.partitions[0].new_isr) == MAX_ELEMENTS + 1
