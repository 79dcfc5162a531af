"""Replicas that brokers have in their log directories, and that are not assigned to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from regent.controller.view import UnassignedReplica
from regent.model.partition import TopicPartition

SAMPLE_SIZE: Final = 20


class UnassignedReplicas:
    """As brokers have said when they were asked last.

    Attributes:
        announced_checks: How often the next check was announced: it is not put off for ever.
    """

    def __init__(self) -> None:
        self.announced_checks = 0
        self._sizes: dict[int, dict[TopicPartition, int]] = {}

    @property
    def count(self) -> int:
        return sum(map(len, self._sizes.values()))

    def on_broker(self, broker_id: int) -> Mapping[TopicPartition, int]:
        """Bytes by replica."""
        return self._sizes.get(broker_id, {})

    def sample(self) -> tuple[UnassignedReplica, ...]:
        """The first few."""
        return tuple(islice(self._all(), SAMPLE_SIZE))

    def _all(self) -> Iterator[UnassignedReplica]:
        for broker_id, sizes in self._sizes.items():
            for tp, size in sizes.items():
                yield UnassignedReplica(tp.topic, tp.partition, broker_id, size)

    def replace(self, broker_id: int, sizes: Mapping[TopicPartition, int]) -> None:
        """The broker has said what it has."""
        if sizes:
            self._sizes[broker_id] = dict(sizes)
        else:
            self._sizes.pop(broker_id, None)

    def forget_broker(self, broker_id: int) -> None:
        """The broker's life has ended."""
        self._sizes.pop(broker_id, None)
