"""Leaders that change ISRs by themselves, as brokers below inter.broker.protocol.version 2.7 do.

The last follower of a partition leaves the ISR, and returns with the next change. Its leader
writes the state znode on condition of the version that it knows, and announces its changes every
2.5 s in a notification (``ReplicaManager.maybePropagateIsrChanges``). The partitions take turns.
What differs from brokers: changes are written many to a transaction, since one client writes for
all leaders.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

from kazoo.client import KazooClient

from benchmarks.cluster import Cluster, Partition
from benchmarks.errors import BenchmarkError
from benchmarks.stub.followers import PROPAGATION_INTERVAL_S
from benchmarks.verification import Versions
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.topics import encode_partition_state
from tests.support.broker_znodes import (
    encode_isr_change_notification,
    isr_change_notification_prefix,
)

_IN_A_TRANSACTION: Final = 100
_IN_FLIGHT: Final = 8
_TIMEOUT_S: Final = 30.0

_Written = tuple[list[Partition], Any]


class IsrChanges:
    """Changes between :meth:`start` and :meth:`stop`, from a thread, in a session of its own for
    the length of a `with` block.

    Nobody else changes these nodes, so a change that is refused ends it.
    """

    def __init__(self, zookeeper: str, cluster: Cluster) -> None:
        self._client: Any = KazooClient(zookeeper, timeout=_TIMEOUT_S)
        self._partitions = list(cluster.partitions)
        self._next = itertools.cycle(self._partitions)
        self._versions: dict[tuple[str, int], int] = {}
        self._changes: list[tuple[int, tuple[str, int]]] = []
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._failure: BaseException | None = None

    def __enter__(self) -> IsrChanges:
        self._client.start(timeout=_TIMEOUT_S)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._client.stop()
        self._client.close()

    def start(self, a_second: int) -> None:
        """Begin to change ISRs, so many a second, as far as ZooKeeper takes them."""
        self._stopping.clear()
        self._changes.clear()
        self._thread = threading.Thread(
            target=self._run, args=(a_second,), name="ISR changes", daemon=True
        )
        self._thread.start()

    @property
    def count(self) -> int:
        """Changes since :meth:`start`."""
        return len(self._changes)

    def stop(self) -> None:
        """End it, with all replicas in sync again.

        Raises:
            BenchmarkError: A change was refused.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            raise BenchmarkError(f"leaders could not change ISRs: {self._failure!r}")

    def versions(self, zxid: int) -> Versions:
        """What partitions had at a transaction since :meth:`start`, and what they have now."""
        oldest = dict(self._versions)
        for changed_at, partition in self._changes:
            if changed_at > zxid:
                oldest[partition] -= 1
        return Versions(oldest, dict(self._versions))

    def versions_now(self) -> Versions:
        """What partitions have while nothing changes."""
        return Versions(self._versions, self._versions)

    def _run(self, a_second: int) -> None:
        try:
            self._change(a_second)
            left = [
                p for p in self._partitions if self._versions.get((p.topic, p.partition), 0) % 2
            ]
            for some in _batches(left):
                self._apply((some, self._write(some)))
        except BaseException as failure:  # noqa: BLE001  # raised by `stop`, in the caller's thread
            self._failure = failure

    def _change(self, a_second: int) -> None:
        pending: queue.SimpleQueue[_Written] = queue.SimpleQueue()
        batch = max(1, min(_IN_A_TRANSACTION, a_second // 100, len(self._partitions)))
        announced: list[Partition] = []
        began = announced_at = time.monotonic()
        for written in itertools.count(batch, batch):
            some = list(itertools.islice(self._next, batch))
            if pending.qsize() >= min(_IN_FLIGHT, max(len(self._partitions) // batch - 1, 1)):
                self._apply(pending.get())  # so that a partition is never changed twice in flight
            pending.put((some, self._write(some)))
            announced += some
            if time.monotonic() - announced_at >= PROPAGATION_INTERVAL_S:
                self._announce(announced)
                announced, announced_at = [], time.monotonic()
            if self._stopping.wait(max(began + written / a_second - time.monotonic(), 0)):
                break
        while not pending.empty():
            self._apply(pending.get())

    def _write(self, partitions: list[Partition]) -> Any:
        transaction = self._client.transaction()
        for partition in partitions:
            tp = TopicPartition(partition.topic, partition.partition)
            version = self._versions.get(tp, 0)
            content = encode_partition_state(partition.state_at(version + 1))
            transaction.set_data(paths.partition_state(tp), content, version=version)
        return transaction.commit_async()

    def _apply(self, written: _Written) -> None:
        partitions, answer = written
        for partition, stat in zip(partitions, answer.get(timeout=_TIMEOUT_S), strict=True):
            if isinstance(stat, Exception):
                raise stat
            key = (partition.topic, partition.partition)
            self._versions[key] = stat.version
            self._changes.append((stat.mzxid, key))

    def _announce(self, partitions: list[Partition]) -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in dict.fromkeys(partitions):
            tp = TopicPartition(partition.topic, partition.partition)
            by_leader.setdefault(partition.replicas[0], []).append(tp)
        for changed in by_leader.values():
            self._client.create(
                isr_change_notification_prefix(),
                encode_isr_change_notification(changed),
                sequence=True,
            )


def _batches(partitions: list[Partition]) -> Iterator[list[Partition]]:
    for start in range(0, len(partitions), _IN_A_TRANSACTION):
        yield partitions[start : start + _IN_A_TRANSACTION]
