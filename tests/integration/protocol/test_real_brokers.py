"""Real brokers of all supported lines obey the channels, each at its own protocol version."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import pytest

from regent.model.partition import TopicPartition
from regent.protocol.control_requests import (
    ControlRequests,
    ControlResponse,
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaResponse,
)
from sandbox import KafkaCluster, ZooKeeper
from sandbox.kafka_jars import version_tuple
from tests.integration.protocol.foreign_controller import (
    foreign_controller,
)
from tests.support.soak import soak

pytestmark = pytest.mark.integration

UNKNOWN_TOPIC_OR_PARTITION = 3
FENCED_LEADER_EPOCH = 74


class Line(NamedTuple):
    """A broker version, the protocol version it is set to, and what follows from both."""

    release: str
    setting: str | None
    protocol: tuple[int, int]

    @property
    def leader_epoch_in_stop_replica(self) -> bool:
        """KIP-570: from 2.6 on."""
        return self.protocol >= (2, 6)

    @property
    def topic_ids(self) -> bool:
        """KIP-516: from 2.8 on."""
        return self.protocol >= (2, 8)


LINES = [
    Line("1.1.1", None, (1, 1)),
    Line("3.9.1", None, (3, 9)),
    *(
        pytest.param(line, marks=soak("versions"))
        for line in (
            Line("2.4.1", None, (2, 4)),
            Line("2.8.2", None, (2, 8)),
            Line("3.3.2", None, (3, 3)),
            Line("3.9.1", "2.6", (2, 6)),
            Line("3.9.1", "1.1", (1, 1)),
        )
    ),
]


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.fixture(scope="module", params=LINES, ids=lambda line: "-".join(filter(None, line[:2])))
def line(request: pytest.FixtureRequest) -> Line:
    chosen: Line = request.param
    return chosen


@pytest.fixture(scope="module")
def kafka(line: Line, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    chroot = f"/{line.release}-{line.setting}"
    with KafkaCluster(
        zookeeper=zookeeper.connect_string + chroot,
        brokers=2,
        version=line.release,
        inter_broker_protocol_version=line.setting,
        session_timeout_ms=60_000,
        config={"controlled.shutdown.enable": False},
    ) as cluster:
        yield cluster


async def test_errors_of_partitions_come_back_by_name(line: Line, kafka: KafkaCluster) -> None:
    """Of two topics, the error is reported for the right one: that of a replica which is assigned
    elsewhere. A leader epoch that is not new to the broker is no error."""
    names = ("first", "second")
    async with foreign_controller(kafka.zookeeper) as controller:
        assert await controller.channels.inter_broker_protocol() == line.protocol
        if line.topic_ids:
            controller.topic_ids.update({name: uuid.uuid4() for name in names})
        assert _errors(await controller.send(controller.announcement())) == []
        for name in names:
            born = controller.birth(name, {0: (1,), 1: (1,)}, leader_epoch=5)
            assert _errors(await controller.send(born)) == []

        older = controller.birth("second", {1: (1,)}, leader_epoch=4)
        newer = controller.birth("first", {0: (1,), 1: (1,)}, leader_epoch=6)
        stray = _sent_to(1, controller.birth("second", {0: (2,)}, leader_epoch=6))
        answers = await controller.send(_merged(_merged(newer, older), stray))
        (first,) = [answer for answer in answers if isinstance(answer, LeaderAndIsrResponse)]
        assert first.error_code == 0
        assert first.partition_errors == {TopicPartition("second", 0): UNKNOWN_TOPIC_OR_PARTITION}

        # Up to 3.3 the epoch must be larger than the broker's; from 3.4 on it may be equal
        # (KAFKA-13972).
        accepted = 6 if version_tuple(line.release) >= (3, 4) else 7
        stop = {
            TopicPartition("first", 0): StopReplicaPartition(leader_epoch=accepted, delete=True),
            TopicPartition("first", 1): StopReplicaPartition(leader_epoch=accepted, delete=False),
            TopicPartition("second", 1): StopReplicaPartition(leader_epoch=4, delete=True),
        }
        answers = await controller.send(controller.batch(stop_replica={1: stop}))
        if line.leader_epoch_in_stop_replica:
            assert [
                answer.partition_errors
                for answer in answers
                if isinstance(answer, StopReplicaResponse)
            ] == [{TopicPartition("second", 1): FENCED_LEADER_EPOCH}, {}]


def _errors(answers: Sequence[ControlResponse]) -> list[ControlResponse]:
    """Answers that are not plain success."""
    return [
        answer
        for answer in answers
        if answer.error_code != 0 or getattr(answer, "partition_errors", None)
    ]


def _sent_to(broker_id: int, requests: ControlRequests) -> ControlRequests:
    """The same partitions in a LeaderAndIsr to one broker, whoever hosts them."""
    partitions = dict.fromkeys(requests.partitions, True)
    receivers = {
        receiver: partitions if receiver == broker_id else {}
        for receiver in requests.leader_and_isr
    }
    return msgspec.structs.replace(requests, leader_and_isr=receivers)


def _merged(one: ControlRequests, other: ControlRequests) -> ControlRequests:
    return msgspec.structs.replace(
        one,
        partitions={**one.partitions, **other.partitions},
        leader_and_isr={
            broker_id: {**replicas, **other.leader_and_isr[broker_id]}
            for broker_id, replicas in one.leader_and_isr.items()
        },
    )
