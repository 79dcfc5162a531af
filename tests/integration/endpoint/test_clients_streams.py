"""Kafka Streams applications, with nothing but Regent's address.

A Streams application is its own administrator: the leader of its group describes topics and creates
those that it needs, over and over, wherever the controller is.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from sandbox.streams import StreamsApplication
from tests.integration.endpoint.clients_support import PARTITIONS, ServedCluster, brokers_of
from tests.support.soak import soak
from tests.support.workload import workload

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    soak("endpoint"),
    brokers_of("2.8.2", "3.9.1"),
]

REPLICAS = 3
POLL_S = 30.0

_numbers = itertools.count(1)


class Sums:
    """An application that adds up the records of its input topic, by their remainder modulo 9."""

    def __init__(self, served: ServedCluster) -> None:
        number = next(_numbers)
        self._served = served
        self.input_topic, self.output_topic = f"numbers-{number}", f"sums-{number}"
        for topic in (self.input_topic, self.output_topic):
            served.tools("3.9.1").create_topic(
                topic, partitions=PARTITIONS, replication_factor=REPLICAS
            )
        self.application = StreamsApplication(
            served.address,
            application_id=f"adding-{number}",
            input_topic=self.input_topic,
            output_topic=self.output_topic,
            replication_factor=REPLICAS,
            version=served.cluster.kafka.version,
        )

    def read(self) -> dict[str, list[int]]:
        """The numbers of the input, by the remainder that they are added under."""
        numbers = defaultdict(list)
        for _, value in committed(self._served, self.input_topic):
            numbers[str(int(value) % 9)].append(int(value))
        return numbers

    def added(self) -> dict[str, list[int]]:
        """The numbers by which each sum has grown."""
        sums: dict[str, list[int]] = defaultdict(lambda: [0])
        for key, value in committed(self._served, self.output_topic):
            sums[key.decode()].append(struct.unpack(">i", value)[0])
        return {key: [b - a for a, b in itertools.pairwise(each)] for key, each in sums.items()}

    def wait_for_all(self) -> None:
        """Wait until there are as many sums as numbers have been read."""
        wanted = count(self.read())
        self._served.cluster.wait(
            lambda: count(self.added()),
            f"{wanted} sums",
            until=lambda found: found >= wanted,
            interval_s=0.5,
            watch=[self.application.process],
        )


def count(values: dict[str, list[int]]) -> int:
    return sum(len(each) for each in values.values())


def committed(served: ServedCluster, topic: str) -> list[tuple[bytes, bytes]]:
    """Key and value of all committed records of a topic, each partition's in their order.

    Brokers are asked for them, since Regent may be away.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": served.cluster.kafka.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    records, unread = [], set(range(PARTITIONS))
    consumer.assign([TopicPartition(topic, number, 0) for number in sorted(unread)])
    try:
        while unread:
            message = consumer.poll(POLL_S)
            assert message is not None, f"{topic}: no end of partitions {unread}"
            error = message.error()
            if error is None:
                records.append((message.key() or b"", message.value() or b""))
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            unread.discard(message.partition())
    finally:
        consumer.close()
    return records


@pytest.fixture
def sums(served: ServedCluster) -> Iterator[Sums]:
    found = Sums(served)
    yield found
    found.application.close()


def test_an_application_creates_its_internal_topics(served: ServedCluster, sums: Sums) -> None:
    znodes = served.cluster.znodes
    before = served.requests("CreateTopics")
    sums.application.start()
    assert served.requests("CreateTopics") > before
    assert set(sums.application.internal_topics) <= set(znodes.topics())
    for topic in sums.application.internal_topics:
        assignment = znodes.assignment(topic) or {}
        assert sorted(assignment) == list(range(PARTITIONS))
        assert all(sorted(replicas) == [1, 2, 3] for replicas in assignment.values())
    _, changelog = sums.application.internal_topics
    assert znodes.json(f"/config/topics/{changelog}")["config"]["cleanup.policy"] == "compact"
    everywhere = (znodes.assignment(topic) or {} for topic in znodes.topics())
    used = {broker for each in everywhere for replicas in each.values() for broker in replicas}
    assert used == {1, 2, 3}


def test_each_record_counts_exactly_once_while_the_controller_changes(
    served: ServedCluster, sums: Sums, tmp_path: Path
) -> None:
    """From Regent to a broker, and back; then the application starts once more."""
    sums.application.start()
    with workload(served.tools("3.9.1"), sums.input_topic, tmp_path) as producer:
        producer.wait_for_progress()
        sums.wait_for_all()
        served.process.stop()
        served.cluster.wait_for_a_broker_as_controller()
        producer.wait_for_progress()
        sums.wait_for_all()
        served.process.start()
        served.process.wait_until_active()
        served.wait_until_announced()
        producer.wait_for_progress()
        sums.application.stop()
        producer.wait_for_progress()
        sums.application.start()
        producer.wait_for_progress()
    assert producer.failed() == []
    sums.wait_for_all()
    sums.application.stop()
    numbers, added = sums.read(), sums.added()
    assert count(numbers) >= len(producer.acknowledged())
    assert {key: Counter(each) for key, each in added.items()} == {
        key: Counter(each) for key, each in numbers.items()
    }
