"""The cluster that controllers are measured on: brokers that are stubs, topics, partitions.

Everything follows from the numbers, so that what is written to ZooKeeper, and what every broker
has to be told, need not be remembered anywhere.
"""

import itertools
import uuid
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from benchmarks.stub.server import LOOPBACK
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition

PARTITIONS_PER_TOPIC = 50
REPLICATION_FACTOR = 3
BROKERS = 5
PROTOCOL_VERSION = "2.6"
"""inter.broker.protocol.version of brokers that change ISRs themselves: LeaderAndIsr 4,
UpdateMetadata 6, no topic ids."""
NEWEST_PROTOCOL_VERSION = "3.9"
"""The same of brokers that ask the controller: UpdateMetadata 8, topic ids."""
CONTROLLER_EPOCH = 1
"""In which the partitions' leaders were elected: not after the first controller's."""


class Partition(NamedTuple):
    """A partition with its replicas, all of them in sync, the first one being its leader."""

    topic: str
    partition: int
    replicas: tuple[int, ...]

    @property
    def state(self) -> LeaderAndIsr:
        """Its leadership, never changed since its creation."""
        return self.state_at(0)

    def state_at(self, version: int) -> LeaderAndIsr:
        """Its leadership after so many changes by its leader: the last follower leaves the ISR, and
        returns with the next one."""
        return LeaderAndIsr(
            leader=self.replicas[0],
            leader_epoch=0,
            isr=self.replicas if version % 2 == 0 else self.replicas[:-1],
            controller_epoch=CONTROLLER_EPOCH,
            partition_epoch=version,
        )


class Cluster:
    """`size` partitions, evenly spread over five brokers; none of them has ever moved.

    `protocol_version` is the inter.broker.protocol.version: one of the two above.
    """

    def __init__(
        self,
        size: int,
        *,
        partitions_per_topic: int = PARTITIONS_PER_TOPIC,
        replication_factor: int = REPLICATION_FACTOR,
        protocol_version: str = PROTOCOL_VERSION,
    ) -> None:
        self.size = size
        self.protocol_version = protocol_version
        self.broker_ids = tuple(range(1, BROKERS + 1))
        self.replication_factor = replication_factor
        self._partitions_per_topic = partitions_per_topic

    @cached_property
    def topics(self) -> dict[str, list[Partition]]:
        """All partitions by topic, in the order of their numbers."""
        replica_lists = list(replica_lists_of(self.broker_ids, self.replication_factor))
        topics: dict[str, list[Partition]] = {}
        for number in range(self.size):
            topic, partition = divmod(number, self._partitions_per_topic)
            name = f"topic-{topic:05d}"
            replicas = replica_lists[number % len(replica_lists)]
            topics.setdefault(name, []).append(Partition(name, partition, replicas))
        return topics

    @property
    def partitions(self) -> Iterator[Partition]:
        """All partitions."""
        return itertools.chain.from_iterable(self.topics.values())

    @cached_property
    def states(self) -> dict[TopicPartition, Partition]:
        """All partitions by topic and number."""
        return {TopicPartition(p.topic, p.partition): p for p in self.partitions}

    def hosted_by(self, broker_id: int) -> set[TopicPartition]:
        """The partitions of which a broker has a replica."""
        return {tp for tp, partition in self.states.items() if broker_id in partition.replicas}

    def assignments(self, topic: str) -> dict[int, ReplicaAssignment]:
        """Replicas of a topic's partitions."""
        return {p.partition: ReplicaAssignment(p.replicas) for p in self.topics[topic]}

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """The id of a topic; None below inter.broker.protocol.version 2.8."""
        if self.protocol_version == PROTOCOL_VERSION:
            return None
        return uuid.uuid5(uuid.NAMESPACE_OID, topic)

    def registrations(self, ports: Mapping[int, int]) -> list[Broker]:
        """The brokers as they register themselves in ZooKeeper at this protocol version."""
        return [
            Broker(
                broker_id=broker_id,
                epoch=0,
                endpoints=(EndPoint("PLAINTEXT", "PLAINTEXT", LOOPBACK, ports[broker_id]),),
                registration_version=4 if self.protocol_version == PROTOCOL_VERSION else 5,
            )
            for broker_id in self.broker_ids
        ]


def replica_lists_of(
    broker_ids: tuple[int, ...], replication_factor: int
) -> Iterator[tuple[int, ...]]:
    """All ways to place the replicas of a partition, leaders taking turns."""
    by_leader = [
        [
            (leader, *followers)
            for followers in itertools.permutations(
                [b for b in broker_ids if b != leader], replication_factor - 1
            )
        ]
        for leader in broker_ids
    ]
    return itertools.chain.from_iterable(zip(*by_leader, strict=True))
