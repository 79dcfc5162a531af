"""What a controller sends to stub brokers, as the benchmarks record it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from benchmarks.stub.answers import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from benchmarks.stub.exchanges import Exchange
from benchmarks.zookeeper import Election
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.control_codec import encode_body
from regent.protocol.control_requests import (
    ControlRequest,
    ControlRequests,
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
)
from regent.protocol.framing import joined
from regent.protocol.partition_state import PartitionState
from tests.support.unmerged_requests import requests_to

ELECTION = Election(controller_id=7, epoch=3, triggered_at=0, elected_at=0, clock_offset=0, zxid=0)
BROKER_EPOCHS = {1: 101, 2: 102, 3: 103}
VERSIONS = {LEADER_AND_ISR: 4, STOP_REPLICA: 3, UPDATE_METADATA: 6}

States = Mapping[TopicPartition, tuple[LeaderAndIsr, ReplicaAssignment]]


def frame_of(
    request: ControlRequest, *, versions: Mapping[int, int] = VERSIONS
) -> tuple[int, bytearray]:
    """The kind of a request, and its bytes without their length."""
    if isinstance(request, LeaderAndIsrRequest):
        api_key = LEADER_AND_ISR
    elif isinstance(request, UpdateMetadataRequest):
        api_key = UPDATE_METADATA
    else:
        api_key = STOP_REPLICA
    header = struct.pack(">hhih", api_key, versions[api_key], 1, 6) + b"client\0"
    body = joined(encode_body(request, version=versions[api_key], listener=None))
    return api_key, bytearray(header + body)


def sent(requests: ControlRequests, *, answered_at: int) -> list[Exchange]:
    """A batch, answered by all receivers at the same moment."""
    exchanges = []
    for broker_id in requests.brokers:
        for request in requests_to(requests, broker_id):
            api_key, frame = frame_of(request)
            exchanges.append(
                Exchange(
                    broker_id,
                    api_key,
                    VERSIONS[api_key],
                    frame,
                    answered_at,
                    answered_at,
                    answered_at,
                )
            )
    return exchanges


def batch(states: States) -> ControlRequests:
    """Return requests that tell each broker the leaderships that concern it."""
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)
    brokers = {b: Broker(b, epoch, (endpoint,)) for b, epoch in BROKER_EPOCHS.items()}
    hosted = {
        broker_id: {tp: False for tp, (_, a) in states.items() if broker_id in a.replicas}
        for broker_id in brokers
    }
    return ControlRequests(
        controller_id=ELECTION.controller_id,
        controller_epoch=ELECTION.epoch,
        brokers=brokers,
        topic_ids={},
        partitions={tp: PartitionState(tp.partition, *some) for tp, some in states.items()},
        offline_replicas={},
        leader_and_isr={b: some for b, some in hosted.items() if some},
        update_metadata_receivers=tuple(brokers),
        deleted_partitions=frozenset(),
        stop_replica={},
    )
