"""What brokers refuse to do for the controller: a broker that does not lead, follow or delete.

A refusal changes nothing in ZooKeeper, so nothing else shows it: a broker that answers a
LeaderAndIsr with an error stays what it was while clients take it for the new leader. Kafka's
controller writes a log line. Here a refusal is state, from the answer until the broker accepts the
request, its session ends, or the topic is gone.

What is no refusal:

- STALE_CONTROLLER_EPOCH of a single partition: its leader epoch is not new to the broker;
- KAFKA_STORAGE_ERROR of a LeaderAndIsr: the replica is on a failed log directory, that is offline,
  which is kept and shown as such;
- FENCED_LEADER_EPOCH of a StopReplica without deletion: brokers 2.6 to 3.3 refuse an epoch that
  they have already (KAFKA-13972), and have stopped fetching by the LeaderAndIsr of that epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from regent.controller.view import RefusedReplica
from regent.model.partition import TopicPartition

SAMPLE_SIZE: Final = 20
"""Refused replicas that are named where all of them would be too many."""


class Refusals:
    """Refused replicas by broker and partition, and brokers that refuse UpdateMetadata.

    Attributes:
        metadata: Broker -> name of the error with which it refused the last UpdateMetadata.
    """

    def __init__(self) -> None:
        self._errors: dict[int, dict[TopicPartition, str]] = {}
        self.metadata: dict[int, str] = {}

    @property
    def count(self) -> int:
        """Number of refused replicas."""
        return sum(map(len, self._errors.values()))

    def on_broker(self, broker_id: int) -> Mapping[TopicPartition, str]:
        """Partitions that a broker refuses, with the error's name."""
        return self._errors.get(broker_id, {})

    def of_partition(self, tp: TopicPartition) -> tuple[tuple[int, str], ...]:
        """Brokers that refuse a partition, with the error's name."""
        if not self._errors:
            return ()
        return tuple((b, errors[tp]) for b, errors in self._errors.items() if tp in errors)

    def sample(self, limit: int = SAMPLE_SIZE) -> tuple[RefusedReplica, ...]:
        """Some of the refused replicas."""
        return tuple(islice(self._all(), limit))

    def _all(self) -> Iterator[RefusedReplica]:
        for broker_id, errors in self._errors.items():
            for tp, error in errors.items():
                yield RefusedReplica(tp.topic, tp.partition, broker_id, error)

    def update(
        self,
        broker_id: int,
        *,
        refused: Mapping[TopicPartition, str],
        done: Iterable[TopicPartition],
    ) -> dict[TopicPartition, str | None]:
        """Take an answer in. Returns what changed: the new error of a partition, None for none."""
        before = self._errors.get(broker_id, {})
        changed: dict[TopicPartition, str | None] = {
            tp: error for tp, error in refused.items() if before.get(tp) != error
        }
        if before:
            changed |= {tp: None for tp in done if tp in before and tp not in refused}
        after = {tp: error for tp, error in before.items() if tp not in changed}
        self._replace(
            broker_id, after | {tp: error for tp, error in changed.items() if error is not None}
        )
        return changed

    def forget_broker(self, broker_id: int) -> None:
        """The broker's life has ended."""
        self._errors.pop(broker_id, None)
        self.metadata.pop(broker_id, None)

    def forget_replicas(self, broker_id: int, partitions: Iterable[TopicPartition]) -> None:
        """The broker does not host the partitions any more."""
        errors = self._errors.get(broker_id)
        if errors:
            gone = dict.fromkeys(partitions)
            self._replace(broker_id, {tp: e for tp, e in errors.items() if tp not in gone})

    def forget_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """The partitions do not exist any more."""
        if not self._errors:
            return
        gone = dict.fromkeys(partitions)
        for broker_id, errors in list(self._errors.items()):
            self._replace(broker_id, {tp: e for tp, e in errors.items() if tp not in gone})

    def _replace(self, broker_id: int, errors: dict[TopicPartition, str]) -> None:
        if errors:
            self._errors[broker_id] = errors
        else:
            self._errors.pop(broker_id, None)
