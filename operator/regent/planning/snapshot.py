"""A snapshot of a cluster: what the planner starts from, and the file that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

UNKNOWN: Final = -1
"""The size of a replica that nobody has told, the leader where there is none."""

_VERSION: Final = 1


class SnapshotBroker(msgspec.Struct, frozen=True, rename="camel"):
    """A broker.

    Attributes:
        rack: None if it has none, or is not alive: its rack is known from its registration only.
        alive: Whether it is registered.
        disk_bytes: Capacity of all its log directories together; None if it is not known.
    """

    id: int
    rack: str | None
    alive: bool
    disk_bytes: int | None = None


class SnapshotPartition(msgspec.Struct, frozen=True, gc=False):
    """A partition.

    Attributes:
        replicas: Broker ids, the preferred leader first.
        leader: Broker id, or :data:`UNKNOWN`.
        sizes: Bytes of each replica, or :data:`UNKNOWN`.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment.

    Attributes:
        brokers: In order of their ids.
        partitions: In order of topics and numbers.
        remarks: What is missing or was left out, and what the planner makes of it; a sentence each,
            for people.
    """

    brokers: tuple[SnapshotBroker, ...]
    partitions: tuple[SnapshotPartition, ...]
    remarks: tuple[str, ...] = ()

    @property
    def has_all_sizes(self) -> bool:
        """Whether the size of every replica is known."""
        return all(UNKNOWN not in partition.sizes for partition in self.partitions)

    def encode(self) -> bytes:
        """As the file that ``regent plan`` reads; docs/planner.md has the format.

        A partition is a line: people compare such files. The same snapshot has the same bytes.
        """
        head = {"version": _VERSION, "brokers": self.brokers}
        encoder = msgspec.json.Encoder()
        opening = encoder.encode(head)[:-1]
        return opening + b',"partitions":[\n' + _lines(encoder, self.partitions) + b"\n]}\n"


def _lines(encoder: msgspec.json.Encoder, rows: Sequence[Any]) -> bytes:
    return b",\n".join(map(encoder.encode, rows))
