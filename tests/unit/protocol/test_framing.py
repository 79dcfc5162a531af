from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.serial import entity_reader

from regent.protocol.framing import (
    CorrelationError,
    FrameError,
    FrameReader,
    RequestHeader,
    decode_response,
    encode_request,
    joined,
)
from regent.protocol.primitives import DecodeError
from tests.support.stub_broker import frame_response


@given(frames=st.lists(st.binary(max_size=30), max_size=8), data=st.data())
def test_frames_survive_any_fragmentation(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    reader = FrameReader()
    received: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += reader.feed(stream[start:end])
    assert received == frames
    assert reader.pending == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 11, 2**31 - 1])
def test_an_impossible_size_is_refused_before_anything_is_buffered(size: int) -> None:
    reader = FrameReader(max_frame_size=10)
    with pytest.raises(FrameError, match=str(size)):
        reader.feed(size.to_bytes(4, "big", signed=True))


@pytest.mark.parametrize("flexible", [False, True])
@given(
    header=st.builds(
        RequestHeader,
        api_key=st.integers(0, 100),
        api_version=st.integers(0, 20),
        correlation_id=st.integers(0, 2**31 - 1),
        client_id=st.none() | st.text(max_size=10),
    ),
    body=st.lists(st.binary(max_size=10), max_size=3),
)
def test_request_is_read_by_kio(header: RequestHeader, body: list[bytes], flexible: bool) -> None:
    (frame,) = FrameReader().feed(joined(encode_request(header, body, flexible=flexible)))
    kind = RequestHeaderV2 if flexible else RequestHeaderV1
    entity: Any
    entity, size = entity_reader(kind)(frame, 0)
    assert (
        entity.request_api_key,
        entity.request_api_version,
        entity.correlation_id,
        entity.client_id,
    ) == header
    assert frame[size:] == b"".join(body)


@pytest.mark.parametrize(("api_key", "flexible"), [(4, False), (4, True), (18, False), (18, True)])
def test_responses(api_key: int, flexible: bool) -> None:
    """Those to ApiVersions have the old header even where the request was flexible (KIP-511)."""
    frame = frame_response(99, b"body", flexible=flexible and api_key != 18)
    body = decode_response(frame[4:], correlation_id=99, api_key=api_key, flexible=flexible)
    assert body == b"body"


def test_tagged_fields_of_a_response_header_are_skipped() -> None:
    frame = b"\x00\x00\x00\x01" + b"\x01\x07\x02\xaa\xbb" + b"body"
    assert decode_response(frame, correlation_id=1, api_key=4, flexible=True) == b"body"


def test_a_response_to_another_request_is_refused() -> None:
    with pytest.raises(CorrelationError, match=r"request 2.*1 is in flight"):
        decode_response(b"\x00\x00\x00\x02", correlation_id=1, api_key=4, flexible=False)


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x01\x02"])
def test_a_response_without_a_whole_header_is_refused(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_response(frame, correlation_id=1, api_key=4, flexible=True)
