"""A snapshot of a cluster: what the planner starts from, and the file that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from regent.model.log_dirs import LogDirectory

UNKNOWN: Final = -1
"""The size of a replica that nobody has reported, the leader where there is none."""

VERSION: Final = 1


class SnapshotBroker(msgspec.Struct, frozen=True, rename="camel"):
    """A broker.

    Attributes:
        rack: None if it has none, or is not alive: its rack is known from its registration only.
        alive: Whether it is registered.
        disk_bytes: Capacity of all its log directories together; None if it is not known.
        log_dirs: The directories, if there are several and their capacities are known.
    """

    id: int
    rack: str | None
    alive: bool
    disk_bytes: int | None = None
    log_dirs: tuple[LogDirectory, ...] | msgspec.UnsetType = msgspec.UNSET


class SnapshotTopic(msgspec.Struct, frozen=True, rename="camel"):
    """What a snapshot has of a topic besides its partitions.

    Attributes:
        min_isr: ``min.insync.replicas``, from the topic or the cluster's dynamic default.
    """

    min_isr: int


class SnapshotPartition(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A partition.

    Attributes:
        replicas: Broker ids, the preferred leader first.
        leader: Broker id, or :data:`UNKNOWN`.
        sizes: Bytes of each replica, or :data:`UNKNOWN`.
        isr: Those of the replicas that are in sync, or were the last to be; None if not known.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int
    sizes: tuple[int, ...]
    isr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment.

    Attributes:
        brokers: In order of their ids.
        partitions: In order of topics and numbers.
        remarks: What is missing or was left out, and what the planner makes of it; a sentence each,
            for people.
        topics: Topics of which more is known.
    """

    brokers: tuple[SnapshotBroker, ...]
    partitions: tuple[SnapshotPartition, ...]
    remarks: tuple[str, ...] = ()
    topics: Mapping[str, SnapshotTopic] = field(default_factory=dict)

    @property
    def has_all_sizes(self) -> bool:
        """Whether the size of every replica is known."""
        return all(UNKNOWN not in partition.sizes for partition in self.partitions)

    def encode(self) -> bytes:
        """As the file that ``regent plan`` and ``regent simulate`` read (docs/planner.md).

        A partition is a line: people compare such files. The same snapshot has the same bytes.
        """
        head: dict[str, Any] = {"version": VERSION, "brokers": self.brokers}
        if self.topics:
            head["topics"] = self.topics
        encoder = msgspec.json.Encoder()
        opening = encoder.encode(head)[:-1]
        return opening + b',"partitions":[\n' + _lines(encoder, self.partitions) + b"\n]}\n"


def _lines(encoder: msgspec.json.Encoder, rows: Sequence[Any]) -> bytes:
    return b",\n".join(map(encoder.encode, rows))
