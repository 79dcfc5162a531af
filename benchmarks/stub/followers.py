"""Followers that need no time: they are in sync as soon as they and their leader are informed.

What a leader at inter.broker.protocol.version 2.6 does when its followers have caught up: it writes
the grown ISR into the partition's state znode, on condition of the version that it knows, and every
2.5 s at most announces the changes in a notification (``ReplicaManager.maybePropagateIsrChanges``).
It is done in a thread, behind the answers to the controller.
"""

import queue
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kazoo.client import KazooClient

from benchmarks.stub.answers import Header
from benchmarks.stub.requests import PartitionId, PartitionState, RequestReader
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.topics import encode_partition_state
from tests.support.broker_znodes import (
    encode_isr_change_notification,
    isr_change_notification_prefix,
)

PROPAGATION_INTERVAL_S = 2.5
_WRITES_IN_A_TRANSACTION = 200
_TIMEOUT_S = 30.0


class _Sent(NamedTuple):
    """A LeaderAndIsr that a broker was sent; nothing at all ends the thread."""

    broker_id: int
    frame: bytearray
    header: Header


class Growth(NamedTuple):
    """A leader's change of an ISR: what is written, on condition of `state.partition_epoch`."""

    partition: PartitionId
    state: PartitionState


@dataclass(slots=True)
class _Known:
    """The newest state of a partition that any broker was sent, and which ones were."""

    state: PartitionState
    informed: set[int] = field(default_factory=set)


class InSync:
    """Decides which ISRs grow. Knows no ZooKeeper."""

    def __init__(self) -> None:
        self._known: dict[PartitionId, _Known] = {}

    def sent(
        self, broker_id: int, partitions: Iterable[tuple[PartitionId, PartitionState]]
    ) -> list[Growth]:
        """A broker was sent a LeaderAndIsr. Returns what the leaders write now."""
        grown: list[Growth] = []
        for partition, state in partitions:
            if len(state.isr) == len(state.replicas):
                self._known.pop(partition, None)
                continue
            known = self._known.get(partition)
            if known is None or state.leader_epoch > known.state.leader_epoch:
                known = self._known[partition] = _Known(state)
            if state.leader_epoch < known.state.leader_epoch:
                continue
            known.informed.add(broker_id)
            if known.informed.issuperset(state.replicas):
                del self._known[partition]
                joined = tuple(r for r in state.replicas if r not in state.isr)
                grown.append(Growth(partition, state._replace(isr=state.isr + joined)))
        return grown


class Followers:
    """Writes grown ISRs to a ZooKeeper in a thread of its own, until `close`."""

    def __init__(self, zookeeper: str) -> None:
        self._client: Any = KazooClient(zookeeper, timeout=_TIMEOUT_S)
        self._client.start(timeout=_TIMEOUT_S)
        self._queue: queue.SimpleQueue[_Sent | None] = queue.SimpleQueue()
        self._reader = RequestReader()
        self._in_sync = InSync()
        self._unannounced: dict[int, list[TopicPartition]] = {}
        self._announced_at = 0.0
        self._thread = threading.Thread(target=self._run, name="followers", daemon=True)
        self._thread.start()

    def sent(self, broker_id: int, frame: bytearray, header: Header) -> None:
        """A broker has been sent a LeaderAndIsr."""
        self._queue.put(_Sent(broker_id, frame, header))

    def close(self) -> None:
        """End the thread and the session."""
        self._queue.put(None)
        self._thread.join(_TIMEOUT_S)
        self._client.stop()
        self._client.close()

    def _run(self) -> None:
        while True:
            try:
                sent = self._queue.get(
                    timeout=PROPAGATION_INTERVAL_S if self._unannounced else None
                )
            except queue.Empty:
                self._announce()
                continue
            if sent is None:
                return
            request = self._reader.read(sent.frame, sent.header)
            grown = self._in_sync.sent(sent.broker_id, request.partitions.items())
            for start in range(0, len(grown), _WRITES_IN_A_TRANSACTION):
                self._write(grown[start : start + _WRITES_IN_A_TRANSACTION])
            if time.monotonic() - self._announced_at > PROPAGATION_INTERVAL_S:
                self._announce()

    def _write(self, grown: Sequence[Growth]) -> None:
        """Write ISRs together; one by one if a version of one of them is not the one expected."""
        transaction = self._client.transaction()
        for growth in grown:
            transaction.set_data(*_znode(growth))
        failed = any(isinstance(r, Exception) for r in transaction.commit())
        if failed and len(grown) > 1:
            for growth in grown:
                self._write([growth])
        elif not failed:
            for (topic, partition), state in grown:
                self._unannounced.setdefault(state.leader, []).append(
                    TopicPartition(topic, partition)
                )

    def _announce(self) -> None:
        for partitions in self._unannounced.values():
            self._client.create(
                isr_change_notification_prefix(),
                encode_isr_change_notification(partitions),
                sequence=True,
            )
        self._unannounced = {}
        self._announced_at = time.monotonic()


def _znode(growth: Growth) -> tuple[str, bytes, int]:
    """Path, content and expected version."""
    (topic, partition), state = growth
    content = encode_partition_state(
        LeaderAndIsr(
            state.leader,
            state.leader_epoch,
            state.isr,
            state.controller_epoch,
            state.partition_epoch,
        )
    )
    return paths.partition_state(TopicPartition(topic, partition)), content, state.partition_epoch
