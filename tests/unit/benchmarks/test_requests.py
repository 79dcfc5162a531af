"""The benchmarks' own decoder and the stubs' answers, against the declared entities."""

from __future__ import annotations

import pytest
from hypothesis import given

from benchmarks.stub.answers import (
    UPDATE_METADATA,
    read_header,
)
from benchmarks.stub.requests import RequestReader, reference_reading
from regent.protocol.control_requests import ControlRequests
from tests.support.strategies import control_requests
from tests.support.unmerged_requests import requests_to
from tests.unit.benchmarks.exchanges import VERSIONS, frame_of


@pytest.mark.parametrize("update_metadata_version", [6, 8])
@given(batch=control_requests())
def test_a_request_decodes_as_its_declared_entity(
    update_metadata_version: int, batch: ControlRequests
) -> None:
    reader = RequestReader()
    versions = {**VERSIONS, UPDATE_METADATA: update_metadata_version}
    for broker_id in batch.brokers:
        for request in requests_to(batch, broker_id):
            _, frame = frame_of(request, versions=versions)
            header = read_header(frame)
            assert reader.read(frame, header) == reference_reading(frame, header)
