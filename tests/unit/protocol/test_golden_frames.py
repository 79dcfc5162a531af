"""The encoders against frames that Kafka's own classes made (see ``tests/java``)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol import control_codec, describe_log_dirs, leader_and_isr, update_metadata
from regent.protocol.control_requests import (
    ControlRequest,
    ControlRequests,
    DescribeLogDirsRequest,
    StopReplicaPartition,
    StopReplicaRequest,
)
from regent.protocol.framing import RequestHeader, encode_request, joined
from regent.protocol.partition_state import PartitionState
from tests.support.unmerged_requests import (
    header_for,
    leader_and_isr_to,
    stop_replica_to,
    update_metadata_to,
)

JAVA = Path(__file__).parents[2] / "java"
CORRELATION_ID = 42


class Golden(NamedTuple):
    """One committed frame."""

    release: str
    case: str
    request: str
    version: int
    frame: str


class Case:
    """One batch of ``cases.txt``, which describes its own format."""

    def __init__(self) -> None:
        self.receiver = 0
        self.values: dict[str, Any] = {
            "controller_id": 0,
            "controller_epoch": 0,
            "brokers": {},
            "topic_ids": {},
            "partitions": {},
            "offline_replicas": {},
        }
        self.replicas: dict[TopicPartition, bool] = {}
        self.deleted: list[TopicPartition] = []
        self.stops: dict[TopicPartition, StopReplicaPartition] = {}

    def add(self, kind: str, *fields: str) -> None:
        getattr(self, f"_{kind.replace('-', '_')}")(*fields)

    def requests(self) -> ControlRequests:
        return ControlRequests(
            **self.values,
            leader_and_isr={self.receiver: self.replicas},
            update_metadata_receivers=(self.receiver,),
            deleted_partitions=frozenset(self.deleted),
            stop_replica={self.receiver: self.stops},
        )

    def _controller(self, broker_id: str, epoch: str) -> None:
        self.values |= {"controller_id": int(broker_id), "controller_epoch": int(epoch)}

    def _receiver(self, broker_id: str) -> None:
        self.receiver = int(broker_id)

    def _broker(self, broker_id: str, epoch: str, rack: str, *endpoints: str) -> None:
        self.values["brokers"][int(broker_id)] = Broker(
            broker_id=int(broker_id),
            epoch=int(epoch),
            endpoints=tuple(
                EndPoint(listener, security, host, int(port))
                for listener, security, host, port in (each.split(",") for each in endpoints)
            ),
            rack=None if rack == "-" else rack,
        )

    def _topic_id(self, topic: str, topic_id: str) -> None:
        self.values["topic_ids"][topic] = uuid.UUID(topic_id)

    def _partition(self, topic: str, index: str, *fields: str) -> None:
        tp = TopicPartition(topic, int(index))
        epoch, leader, leader_epoch, isr, partition_epoch, replicas = fields[:6]
        adding, removing, recovery, new, offline = fields[6:]
        state = LeaderAndIsr(
            leader=int(leader),
            leader_epoch=int(leader_epoch),
            isr=_numbers(isr),
            controller_epoch=int(epoch),
            partition_epoch=int(partition_epoch),
            leader_recovery_state=int(recovery),
        )
        assignment = ReplicaAssignment(_numbers(replicas), _numbers(adding), _numbers(removing))
        self.values["partitions"][tp] = PartitionState(tp.partition, state, assignment)
        self.replicas[tp] = new == "new"
        if offline != "-":
            self.values["offline_replicas"][tp] = _numbers(offline)

    def _deleted(self, topic: str, index: str, epoch: str, isr: str, replicas: str) -> None:
        """The state that it had before is to leave no trace but ISR and controller epoch."""
        tp = TopicPartition(topic, int(index))
        state = LeaderAndIsr(1, 17, _numbers(isr), int(epoch), 23)
        assignment = ReplicaAssignment(_numbers(replicas))
        self.values["partitions"][tp] = PartitionState(tp.partition, state, assignment)
        self.deleted.append(tp)

    def _stop(self, topic: str, index: str, leader_epoch: str, delete: str) -> None:
        stop = StopReplicaPartition(int(leader_epoch), delete == "delete")
        self.stops[TopicPartition(topic, int(index))] = stop


def _numbers(text: str) -> tuple[int, ...]:
    if text == "-":
        return ()
    if ".." in text:
        first, last = text.split("..")
        return tuple(range(int(first), int(last) + 1))
    return tuple(map(int, text.split(",")))


def read_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    current = Case()
    for line in (JAVA / "cases.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, *fields = line.split(" ")
        if kind == "case":
            current = cases[fields[0]] = Case()
        else:
            current.add(kind, *fields)
    return cases


def read_golden() -> Iterator[Golden]:
    for path in sorted((JAVA / "golden").glob("*.txt")):
        for line in path.read_text().splitlines():
            case, request, version, frame = line.split(" ")
            yield Golden(path.stem, case, request, int(version), frame)


CASES = read_cases()
GOLDEN = list(read_golden())


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda each: "-".join(map(str, each[:4])))
def test_a_frame_is_that_of_kafka(golden: Golden) -> None:
    assert _frame(golden).hex() == golden.frame


def test_every_version_is_covered() -> None:
    covered = {(each.request, each.version) for each in GOLDEN}
    assert covered == {
        *(("leader_and_isr", version) for version in leader_and_isr.VERSIONS),
        *(("update_metadata", version) for version in update_metadata.VERSIONS),
        *(("stop_replica_delete", version) for version in range(3)),
        *(("stop_replica_keep", version) for version in range(3)),
        *(("stop_replica", version) for version in range(3, 5)),
        *(("describe_log_dirs", version) for version in describe_log_dirs.VERSIONS),
    }


def _frame(golden: Golden) -> bytes:
    case, version = CASES[golden.case], golden.version
    batch, receiver = case.requests(), case.receiver
    request: ControlRequest
    match golden.request:
        case "leader_and_isr":
            request = leader_and_isr_to(batch, receiver)
        case "update_metadata":
            request = update_metadata_to(batch, receiver)
        case "stop_replica":  # deletes and stops in one, which only the encoder could
            request = StopReplicaRequest(header_for(batch, receiver), case.stops)
        case "describe_log_dirs":
            request = DescribeLogDirsRequest(header_for(batch, receiver))
        case "stop_replica_delete":
            request = stop_replica_to(batch, receiver)[0]
        case _:
            request = stop_replica_to(batch, receiver)[-1]
    body = control_codec.encode_body(request, version=version, listener="INTERNAL")
    header = RequestHeader(
        control_codec.api_key_of(request), version, CORRELATION_ID, str(batch.controller_id)
    )
    flexible = control_codec.is_flexible(request, version)
    return joined(encode_request(header, body, flexible=flexible))[4:]
