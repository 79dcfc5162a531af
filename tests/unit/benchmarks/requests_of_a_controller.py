"""Exchanges between a controller and stub brokers, as the benchmarks record them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from kio.serial import entity_writer

from benchmarks.stub.answers import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from benchmarks.stub.exchanges import Exchange
from benchmarks.stub.requests import PartitionId, PartitionState, Remark, Stopped
from benchmarks.zookeeper import Election
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_REQUEST
from regent.protocol.entities.stop_replica import STOP_REPLICA_REQUEST
from regent.protocol.entities.update_metadata import UPDATE_METADATA_REQUEST
from tests.support.reference_requests import construct

ELECTION = Election(
    controller_id=7, epoch=3, triggered_at=0, elected_at=0, clock_offset=0
)
BROKER_EPOCHS = {1: 101, 2: 102}
_VERSIONS = {LEADER_AND_ISR: 4, STOP_REPLICA: 3, UPDATE_METADATA: 6}


def frame(api_key: int, entity: Any) -> bytearray:
    """A whole request without its length."""
    import io

    body = io.BytesIO()
    entity_writer(type(entity))(body, entity)
    header = struct.pack(">hhih", api_key, _VERSIONS[api_key], 1, 1) + b"c" + b"\0"
    return bytearray(header + body.getvalue())


def exchange(broker_id: int, api_key: int, entity: Any, *, answered_at: int) -> Exchange:
    """A request that a broker has answered."""
    return Exchange(
        broker_id, api_key, _VERSIONS[api_key], frame(api_key, entity), 1, 2, answered_at
    )
