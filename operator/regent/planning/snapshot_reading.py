"""Snapshot files, read and checked: the inverse of ``Snapshot.encode``.

Files that people write may leave out what ``docs/planner.md`` says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import msgspec

from regent.model.errors import ConfigurationError
from regent.model.log_dirs import LogDirectory
from regent.model.topic import topic_name_problem
from regent.planning.snapshot import (
    UNKNOWN,
    VERSION,
    Snapshot,
    SnapshotBroker,
    SnapshotPartition,
    SnapshotTopic,
)

_LARGEST_ID = 2**31 - 1
_LARGEST_PARTITION = 2**31 - 1


class _Broker(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The capacities of networks are for the planner."""

    id: int
    rack: str | None = None
    alive: bool = True
    disk_bytes: int | None = None
    network_in_bytes: int | None = None
    network_out_bytes: int | None = None
    log_dirs: tuple[LogDirectory, ...] | msgspec.UnsetType | None = msgspec.UNSET


class _Partition(msgspec.Struct):
    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int | None = None
    sizes: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None


class _Document(msgspec.Struct):
    version: int
    brokers: list[_Broker]
    partitions: list[_Partition]
    topics: dict[str, SnapshotTopic] = {}


def decode_snapshot(content: bytes, *, source: str) -> Snapshot:
    """The snapshot of a JSON file, brokers and partitions in order.

    Args:
        source: Name of the file, for messages.

    Raises ConfigurationError for what is no snapshot, or cannot be a cluster.
    """
    try:
        document = msgspec.json.decode(content, type=_Document)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigurationError(
            f"{source} is no snapshot: {error}. Take one with regent snapshot -o FILE.json"
        ) from error
    if document.version != VERSION:
        raise ConfigurationError(
            f"{source}: snapshots of version {document.version} are not known, only of {VERSION}"
        )
    brokers = _brokers(document.brokers, source)
    known = {broker.id for broker in brokers}
    partitions = [_partition(each, known, source) for each in document.partitions]
    partitions.sort(key=lambda each: (each.topic, each.partition))
    for one, other in pairwise(partitions):
        if (one.topic, one.partition) == (other.topic, other.partition):
            raise _wrong(source, one, "is listed twice: keep one of the two")
    for topic, found in document.topics.items():
        if found.min_isr < 1:
            raise ConfigurationError(
                f"{source}: topic {_shown(topic)}: minIsr {found.min_isr} is below 1"
            )
    return Snapshot(brokers, tuple(partitions), topics=document.topics)


def _brokers(listed: Sequence[_Broker], source: str) -> tuple[SnapshotBroker, ...]:
    if not listed:
        raise ConfigurationError(f"{source} names no brokers: list them under 'brokers'")
    brokers = sorted(
        (
            SnapshotBroker(b.id, b.rack or None, b.alive, b.disk_bytes, b.log_dirs or msgspec.UNSET)
            for b in listed
        ),
        key=lambda broker: broker.id,
    )
    for broker in brokers:
        if not 0 <= broker.id <= _LARGEST_ID:
            raise ConfigurationError(
                f"{source}: broker {broker.id}: ids are from 0 to {_LARGEST_ID}"
            )
        if broker.rack is not None and not broker.rack.isprintable():
            raise ConfigurationError(
                f"{source}: broker {broker.id}: rack {broker.rack!r} has a control character: "
                "correct the broker's broker.rack"
            )
    for one, other in pairwise(brokers):
        if one.id == other.id:
            raise ConfigurationError(f"{source}: broker {one.id} is listed twice: keep one of them")
    return tuple(brokers)


def _partition(raw: _Partition, brokers: Collection[int], source: str) -> SnapshotPartition:
    replicas = raw.replicas
    leader = raw.leader
    if leader is None:
        leader = replicas[0] if replicas else UNKNOWN
    sizes = raw.sizes if raw.sizes is not None else (UNKNOWN,) * len(replicas)
    partition = SnapshotPartition(raw.topic, raw.partition, replicas, leader, sizes, raw.isr)
    problem = _problem(partition, brokers)
    if problem is not None:
        raise _wrong(source, partition, problem)
    return partition


def _problem(partition: SnapshotPartition, brokers: Collection[int]) -> str | None:  # noqa: C901 - a list of checks
    replicas, isr = partition.replicas, partition.isr
    problem = topic_name_problem(partition.topic)
    if problem is not None:
        return f"is of no legal topic: {problem}"
    if not 0 <= partition.partition <= _LARGEST_PARTITION:
        return f"a partition's number is from 0 to {_LARGEST_PARTITION}"
    if not replicas:
        return "has no replicas: leave it out, or say where they are"
    if len(dict.fromkeys(replicas)) < len(replicas):
        return f"replicas {list(replicas)} name a broker twice: name each once"
    unknown = [replica for replica in replicas if replica not in brokers]
    if unknown:
        return (
            f"broker {unknown[0]} has a replica and is not among the brokers: add it, a dead one "
            'with "alive": false'
        )
    if partition.leader != UNKNOWN and partition.leader not in replicas:
        return (
            f"leader {partition.leader} has no replica of it: name one of {list(replicas)}, or "
            f"{UNKNOWN} if it has no leader"
        )
    if len(partition.sizes) != len(replicas):
        return (
            f"{len(partition.sizes)} sizes for {len(replicas)} replicas: give one for each, "
            f"{UNKNOWN} for an unknown one"
        )
    if isr is not None and (len(dict.fromkeys(isr)) < len(isr) or not isr):
        return f"isr {list(isr)} is empty or names a broker twice: leave it out if it is not known"
    strangers = [member for member in isr or () if member not in replicas]
    if strangers:
        return f"broker {strangers[0]} is in its isr and has no replica of it"
    if isr is not None and partition.leader != UNKNOWN and partition.leader not in isr:
        return f"leader {partition.leader} is not in its isr {list(isr)}"
    return None


def _wrong(source: str, partition: SnapshotPartition, problem: str) -> ConfigurationError:
    name = f"{_shown(partition.topic)}-{partition.partition}"
    return ConfigurationError(f"{source}: {name}: {problem}")


def _shown(topic: str) -> str:
    """A name that may not be a legal one, for a message at a terminal."""
    return topic if topic.isprintable() else repr(topic)
