"""The benchmarks' own decoder and the stubs' answers, against the declared entities."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from kio.serial import entity_reader

from benchmarks.stub.answers import (
    LEADER_AND_ISR,
    STALE_CONTROLLER_EPOCH,
    STOP_REPLICA,
    UPDATE_METADATA,
    Header,
    HostedPartitions,
    leader_and_isr_answer,
    read_header,
    stop_replica_answer,
)
from benchmarks.stub.requests import RequestReader, reference_reading
from regent.protocol.control_requests import ControlRequests, LeaderAndIsrRequest
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_RESPONSE
from regent.protocol.entities.stop_replica import STOP_REPLICA_RESPONSE
from tests.support.strategies import control_requests
from tests.support.unmerged_requests import requests_to
from tests.unit.benchmarks.exchanges import VERSIONS, frame_of

_RESPONSES = {LEADER_AND_ISR: LEADER_AND_ISR_RESPONSE, STOP_REPLICA: STOP_REPLICA_RESPONSE}


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


@given(batch=control_requests())
def test_every_partition_of_a_stop_replica_is_answered(batch: ControlRequests) -> None:
    for broker_id in batch.brokers:
        for request in requests_to(batch, broker_id):
            api_key, frame = frame_of(request)
            if api_key != STOP_REPLICA:
                continue
            header = read_header(frame)
            answer = stop_replica_answer(frame, header, HostedPartitions())
            named = list(RequestReader().read(frame, header).stopped)
            assert answer.partitions == len(named)
            assert _partitions(answer.body, header) == [(*partition, 0) for partition in named]


@given(batch=control_requests())
def test_every_partition_of_a_leader_and_isr_is_answered_by_what_the_broker_knows(
    batch: ControlRequests,
) -> None:
    for broker_id in batch.brokers:
        for request in requests_to(batch, broker_id):
            if not isinstance(request, LeaderAndIsrRequest):
                continue
            _, frame = frame_of(request)
            header, hosted, named = read_header(frame), HostedPartitions(), request.partitions
            epochs = {tp: batch.partitions[tp].leader_and_isr.leader_epoch for tp in named}
            for known in (dict.fromkeys(named, -1), epochs):
                answer = leader_and_isr_answer(frame, header, hosted)
                assert answer.partitions == len(named)
                assert sorted(_partitions(answer.body, header)) == sorted(
                    (*tp, 0 if epochs[tp] > known[tp] else STALE_CONTROLLER_EPOCH) for tp in named
                )


def _partitions(body: bytes, header: Header) -> list[tuple[str, int, int]]:
    response: Any
    response, size = entity_reader(_RESPONSES[header.api_key][VERSIONS[header.api_key]])(body, 0)
    assert size == len(body)
    assert not response.error_code
    return [(e.topic_name, e.partition_index, int(e.error_code)) for e in response.partition_errors]
