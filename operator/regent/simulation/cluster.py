"""A cluster of a snapshot in memory, with the real controller core: brokers can be killed, stopped
and started, and time passes on command."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from regent.admin.commands import Accepted
from regent.controller.commands import ControlledShutdown
from regent.model.cluster import DRAWN_CONTROLLER_IDS
from regent.model.partition import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.planning.snapshot import Snapshot, SnapshotPartition
from regent.simulation.broker import InMemoryBroker
from regent.simulation.broker_znodes import encode_cluster_id
from regent.simulation.clock import Clock
from regent.simulation.controller_process import ControllerProcess, config_of
from regent.simulation.leadership_ledger import LeadershipLedger
from regent.simulation.zookeeper import InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.config import encode_config_change, encode_entity_config
from regent.zk_data.operations import Create, Operation, SetData, Written
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic

UNCLEAN: Final = "unclean.leader.election.enable"

_SHUTDOWN_TRIES: Final = 3
"""controlled.shutdown.max.retries"""

_SHUTDOWN_BACKOFF_MS: Final = 5_000
"""controlled.shutdown.retry.backoff.ms"""

_CHUNK: Final = 500
"""Partitions that one transaction creates: far below jute.maxbuffer."""


class InMemoryCluster:
    """ZooKeeper, brokers and a controller.

    Args:
        snapshot: What there is. Brokers that are not alive in it are dead.
        min_isr: ``min.insync.replicas`` of each topic.
        session_timeout_ms: ``zookeeper.session.timeout.ms`` of the brokers.
        joining: Ids of brokers that may be added later: the controller has another one.
        balances_leaders: ``auto.leader.rebalance.enable``.

    Attributes:
        brokers: All by id, dead ones too.
        replicas: Of each partition, the preferred leader first.
        ledger: Who leads what, and who is in sync.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        min_isr: Mapping[str, int],
        session_timeout_ms: int,
        joining: Iterable[int] = (),
        balances_leaders: bool = True,
    ) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._zookeeper = InMemoryZooKeeper()
        self._admin = self._zookeeper.connect()
        self.clock = Clock()
        self.replicas = {
            TopicPartition(p.topic, p.partition): p.replicas for p in snapshot.partitions
        }
        self.brokers: dict[int, InMemoryBroker] = {}
        alive = {broker.id for broker in snapshot.brokers if broker.alive}
        self._write(_foundation())
        self.ledger = LeadershipLedger(self._zookeeper, self.replicas, min_isr)
        for operations in _topic_nodes(snapshot.partitions, alive):
            self._write(operations)
        for described in snapshot.brokers:
            broker = InMemoryBroker(described.id, described.rack)
            self.brokers[described.id] = broker
            if described.alive:
                broker.start(self._zookeeper)
                broker.is_in_sync = True
        self._process = ControllerProcess(
            self._zookeeper,
            self.clock,
            self.brokers,
            config_of(_free_id({*self.brokers, *joining}), balances_leaders=balances_leaders),
        )
        self._process.settle()

    def advance(self, duration_ms: int) -> None:
        """Let time pass. The controller does what becomes due, at its time."""
        until_ms = self.clock.now_ms() + duration_ms
        while (at_ms := self.clock.next_at_ms()) is not None and at_ms <= until_ms:
            self.clock.advance(at_ms - self.clock.now_ms())
            self._process.settle()
        self.clock.advance(until_ms - self.clock.now_ms())

    # Brokers

    def kill(self, broker_ids: Iterable[int]) -> None:
        """Brokers die together. Their sessions time out together, and then the controller acts."""
        sessions = [self.brokers[broker_id].kill() for broker_id in broker_ids]
        self.advance(self._session_timeout_ms)
        for session_id in sessions:
            self._zookeeper.expire(session_id)
        self._process.settle()

    def stop(self, broker_id: int) -> None:
        """A broker asks to be shut down, up to three times if partitions remain, and ends."""
        broker = self.brokers[broker_id]
        for _ in range(_SHUTDOWN_TRIES):
            (outcome,) = self._process.submit(ControlledShutdown(broker_id, broker.epoch))
            assert isinstance(outcome, Accepted), outcome
            if not outcome.result.remaining_partitions:
                break
            self.advance(_SHUTDOWN_BACKOFF_MS)
        broker.stop()
        self._process.settle()

    def start(self, broker_ids: Iterable[int]) -> None:
        """Brokers start together. They are in no further ISR before :meth:`catch_up`."""
        for broker_id in broker_ids:
            self.brokers[broker_id].start(self._zookeeper)
        self._process.settle()

    def catch_up(self, broker_ids: Iterable[int]) -> None:
        """Brokers have what their leaders have, and are taken into the ISRs."""
        for broker_id in broker_ids:
            self.brokers[broker_id].is_in_sync = True
        self._process.expand_isrs()

    def add(self, broker_id: int, rack: str | None) -> None:
        """A new broker, without replicas."""
        self.brokers[broker_id] = InMemoryBroker(broker_id, rack)
        self.start((broker_id,))
        self.catch_up((broker_id,))

    def allow_unclean(self, allowed: bool) -> None:
        """Change the cluster's default of ``unclean.leader.election.enable``, as with Kafka's
        tools: the controller elects at once."""
        path = paths.broker_config(None)
        content = encode_entity_config({UNCLEAN: "true" if allowed else "false"})
        exists = self._zookeeper.get(path) is not None
        change = encode_config_change(f"brokers/{paths.DEFAULT_ENTITY}")
        self._write(
            [
                SetData(path, content) if exists else Create(path, content),
                Create(paths.config_change_prefix(), change, sequential=True),
            ]
        )
        self._process.settle()

    def _write(self, operations: Sequence[Operation]) -> None:
        results = self._admin.multi(operations)
        assert all(isinstance(result, Written) for result in results), results


def _free_id(taken: Collection[int]) -> int:
    return next(each for each in DRAWN_CONTROLLER_IDS if each not in taken)


def _foundation() -> list[Operation]:
    return [
        *(Create(path) for path in paths.PERSISTENT_PATHS),
        Create(paths.CLUSTER),
        Create(paths.CLUSTER_ID, encode_cluster_id("simulated")),
    ]


def _topic_nodes(
    partitions: Iterable[SnapshotPartition], alive: set[int]
) -> Iterator[list[Operation]]:
    """Transactions that create the topics, with the states of their partitions."""
    for number, (topic, members) in enumerate(groupby(partitions, lambda p: p.topic), start=1):
        listed = list(members)
        znode = TopicZNode(
            uuid.UUID(int=number << 64 | 1),
            {p.partition: ReplicaAssignment(p.replicas) for p in listed},
        )
        yield [
            Create(paths.topic(topic), encode_topic(znode)),
            Create(paths.topic_partitions(topic)),
        ]
        for start in range(0, len(listed), _CHUNK):
            operations: list[Operation] = []
            for partition in listed[start : start + _CHUNK]:
                tp = TopicPartition(topic, partition.partition)
                operations += (
                    Create(paths.topic_partition(tp)),
                    Create(
                        paths.partition_state(tp), encode_partition_state(_state(partition, alive))
                    ),
                )
            yield operations


def _state(partition: SnapshotPartition, alive: set[int]) -> LeaderAndIsr:
    """The state of a partition; without an ISR in the snapshot, the one that it suggests."""
    isr = partition.isr
    if not isr:
        isr = presumed_isr(partition, alive)
    return LeaderAndIsr(max(partition.leader, NO_LEADER), 0, isr, 0, 0)


def presumed_isr(partition: SnapshotPartition, alive: set[int]) -> tuple[int, ...]:
    """The ISR of a partition of which the snapshot does not tell it.

    Where there is a leader, all living replicas are taken to be in sync. Where there is none, all
    dead ones are, as none that lives can have been: it would lead.
    """
    if partition.leader != NO_LEADER:
        return tuple(r for r in partition.replicas if r in alive or r == partition.leader)
    dead = tuple(r for r in partition.replicas if r not in alive)
    return dead or partition.replicas
