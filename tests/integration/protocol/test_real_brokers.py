"""Real brokers of all supported lines obey the channels, each at its own protocol version."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
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
from sandbox import KafkaCluster, KafkaTools, ZooKeeper
from sandbox.kafka_jars import version_tuple
from sandbox.waiting import wait_until_async
from tests.integration.protocol.foreign_controller import (
    CONTROLLER_ID,
    foreign_controller,
)
from tests.support.soak import soak

pytestmark = pytest.mark.integration

STALE_CONTROLLER_EPOCH = 11
UNKNOWN_TOPIC_OR_PARTITION = 3
FENCED_LEADER_EPOCH = 74
STALE_BROKER_EPOCH = 77
INCONSISTENT_TOPIC_ID = 103


class Line(NamedTuple):
    """A broker version, the protocol version it is set to, and what follows from both."""

    release: str
    setting: str | None
    protocol: tuple[int, int]
    registration: int

    @property
    def broker_epochs(self) -> bool:
        """KIP-380: from 2.2 on."""
        return self.protocol >= (2, 2)

    @property
    def leader_epoch_in_stop_replica(self) -> bool:
        """KIP-570: from 2.6 on."""
        return self.protocol >= (2, 6)

    @property
    def topic_ids(self) -> bool:
        """KIP-516: from 2.8 on."""
        return self.protocol >= (2, 8)


LINES = [
    Line("1.1.1", None, (1, 1), 4),
    Line("3.9.1", None, (3, 9), 5),
    *(
        pytest.param(line, marks=soak("versions"))
        for line in (
            Line("2.4.1", None, (2, 4), 4),
            Line("2.8.2", None, (2, 8), 5),
            Line("3.3.2", None, (3, 3), 5),
            Line("3.9.1", "2.6", (2, 6), 4),
            Line("3.9.1", "1.1", (1, 1), 4),
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
        racks=["rack-a"],
        session_timeout_ms=60_000,
        config={"controlled.shutdown.enable": False},
    ) as cluster:
        yield cluster


async def test_the_brokers_are_understood(line: Line, kafka: KafkaCluster) -> None:
    async with foreign_controller(kafka.zookeeper) as controller:
        assert await controller.channels.inter_broker_protocol() == line.protocol
        assert {broker.registration_version for broker in controller.brokers.values()} == {
            line.registration
        }
        for metrics in controller.channels.metrics().values():
            assert metrics.failures == 0


async def test_a_topic_lives_and_dies(line: Line, kafka: KafkaCluster) -> None:
    """Announce, create, serve clients with acks=all, delete: on two brokers."""
    topic, assignment = "a-topic", {0: (1, 2), 1: (2, 1), 2: (1,)}
    directories = {b.broker_id: b.state_path / "data-1" for b in kafka.brokers}
    async with foreign_controller(kafka.zookeeper) as controller:
        if line.topic_ids:
            controller.topic_ids[topic] = uuid.uuid4()
        await controller.channels.inter_broker_protocol()
        assert _errors(await controller.send(controller.announcement())) == []
        metadata = await controller.metadata(1, topic)
        # Old brokers hide a controller that is not among the brokers of the answer.
        hidden = version_tuple(line.release) < (2, 3)
        assert metadata.controller_id == (-1 if hidden else CONTROLLER_ID)
        assert {(each.node_id, each.rack) for each in metadata.brokers} == {
            (1, "rack-a"),
            (2, "rack-a"),
        }
        assert metadata.topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION

        controller.write_topic(topic, assignment)
        born = controller.birth(topic, assignment)
        assert _errors(await controller.send(born)) == []
        for broker_id in (1, 2):
            metadata = await controller.metadata(broker_id, topic)
            assert {
                each.partition_index: (each.leader_id, each.replica_nodes, each.isr_nodes)
                for each in metadata.topics[0].partitions
            } == {p: (replicas[0], replicas, replicas) for p, replicas in assignment.items()}
        for partition, replicas in assignment.items():
            for broker_id in replicas:
                assert (directories[broker_id] / f"{topic}-{partition}").is_dir()
        _produce(kafka, topic)

        assert _errors(await controller.send(controller.death(born))) == []
        for broker_id in (1, 2):
            metadata = await controller.metadata(broker_id, topic)
            assert metadata.topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
        for partition, replicas in assignment.items():
            for broker_id in replicas:
                directory = directories[broker_id] / f"{topic}-{partition}"
                await wait_until_async(
                    functools.partial(_is_gone, directory),
                    describe=f"{directory} to be renamed for deletion",
                )


async def test_an_older_controller_is_refused(line: Line, kafka: KafkaCluster) -> None:
    async with foreign_controller(kafka.zookeeper) as controller:
        born = controller.birth("refused", {0: (1, 2)})
        assert _errors(await controller.send(controller.announcement())) == []
        for requests in (born, controller.death(born)):
            answers = await controller.send(
                msgspec.structs.replace(requests, controller_epoch=controller.epoch - 1)
            )
            assert {answer.error_code for answer in answers} == {STALE_CONTROLLER_EPOCH}
        metadata = await controller.metadata(1, "refused")
        assert metadata.topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION


async def test_another_life_of_a_broker_is_refused(line: Line, kafka: KafkaCluster) -> None:
    if not line.broker_epochs:
        pytest.skip("requests carry no broker epoch yet")
    async with foreign_controller(kafka.zookeeper) as controller:
        assert _errors(await controller.send(controller.announcement())) == []
        earlier = {
            broker_id: msgspec.structs.replace(broker, epoch=broker.epoch - 1)
            for broker_id, broker in controller.brokers.items()
        }
        born = controller.birth("refused", {0: (1, 2)})
        for requests in (born, controller.death(born)):
            answers = await controller.send(msgspec.structs.replace(requests, brokers=earlier))
            assert {answer.error_code for answer in answers} == {STALE_BROKER_EPOCH}


async def test_errors_of_partitions_come_back_by_name(line: Line, kafka: KafkaCluster) -> None:
    """Of two topics, the error is reported for the right one: that of a replica which is assigned
    elsewhere. A leader epoch that is not new to the broker is no error."""
    names = ("first", "second")
    async with foreign_controller(kafka.zookeeper) as controller:
        if line.topic_ids:
            controller.topic_ids.update({name: uuid.uuid4() for name in names})
        assert _errors(await controller.send(controller.announcement())) == []
        for name in names:
            controller.write_topic(name, {0: (1,), 1: (1,)})
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


def _is_gone(directory: Path) -> bool:
    return not directory.exists()


def _produce(kafka: KafkaCluster, topic: str) -> None:
    """Produce to all replicas. Without idempotence: producer ids come from the controller."""
    old = version_tuple(kafka.version) < (2, 5)
    result = KafkaTools(kafka.bootstrap_servers, version=kafka.version).run(
        "kafka-console-producer",
        "--broker-list" if old else "--bootstrap-server",
        kafka.bootstrap_servers,
        f"--topic={topic}",
        "--request-required-acks=all",
        "--producer-property=enable.idempotence=false",
        stdin="".join(f"message {number}\n" for number in range(20)),
    )
    assert "ERROR" not in result.stderr, result.stderr


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
