"""What is known of a cluster at one moment, for its history (docs/history.md). None is unknown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from regent_rebalance.errors import InvalidInputError


class BrokerSample(NamedTuple):
    """A broker.

    Attributes:
        disk_bytes: Capacity of all its log directories together.
    """

    broker: int
    rack: str | None
    alive: bool
    disk_bytes: int | None


class PartitionSample(NamedTuple):
    """A partition.

    Attributes:
        topic_id: As Kafka prints it.
        leader: Broker id.
        sizes: Bytes of each replica.
        log_start_offset, log_end_offset: Of the leader; the end is the high watermark.
        compacted: Whether its log is compacted, so that offsets have holes.
        bytes_in, bytes_out: Measured bytes a second: what producers write to it, what its leader
            sends.
        created: ZooKeeper's transaction that created the topic. A topic that is created again under
            the same name has another one.
    """

    topic: str
    partition: int
    topic_id: str | None
    leader: int | None
    replicas: Sequence[int]
    sizes: Sequence[int | None]
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    compacted: bool | None = None
    bytes_in: float | None = None
    bytes_out: float | None = None
    created: int | None = None


class LeftOut(NamedTuple):
    """A topic or a partition that could not be read, and is not among the partitions.

    Attributes:
        partition: None for all partitions of the topic, or one whose number cannot be read.
        unreadable: Why.
    """

    topic: str
    partition: int | None
    unreadable: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A cluster at one moment.

    Attributes:
        cluster: Id of the Kafka cluster.
        moment: Milliseconds since 1970.
    """

    cluster: str
    moment: int
    brokers: Sequence[BrokerSample]
    partitions: Sequence[PartitionSample]
    left_out: Sequence[LeftOut] = ()


class _Rate(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    topic: str
    partition: int
    bytes_in: float | None = None
    bytes_out: float | None = None


def with_rates(sample: Sample, content: bytes, *, source: str) -> Sample:
    """A sample with rates that somebody has measured.

    Args:
        content: A JSON array of objects with ``topic``, ``partition``, and ``bytesIn`` or
            ``bytesOut`` or both.
        source: Name of the file, for messages.

    Raises:
        InvalidInputError: It is something else; a rate is no rate, or that of no partition of the
            sample, or given twice.
    """
    try:
        listed = msgspec.json.decode(content, type=list[_Rate])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"{source} has no rates: {error}") from error
    rates: dict[tuple[str, int], _Rate] = {}
    for rate in listed:
        name = f"{source}: {rate.topic}-{rate.partition}"
        if (rate.topic, rate.partition) in rates:
            raise InvalidInputError(f"{name} is listed twice: keep one of the two")
        rates[rate.topic, rate.partition] = rate
        for what, value in (("bytesIn", rate.bytes_in), ("bytesOut", rate.bytes_out)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InvalidInputError(
                    f"{name}: {what} {value} is no rate: give bytes a second, or leave it out"
                )
    partitions = []
    for partition in sample.partitions:
        found = rates.pop((partition.topic, partition.partition), _Rate("", 0))
        partitions.append(partition._replace(bytes_in=found.bytes_in, bytes_out=found.bytes_out))
    for topic, number in rates:
        raise InvalidInputError(
            f"{source}: the cluster has no partition {topic}-{number}: leave it out"
        )
    return dataclasses.replace(sample, partitions=partitions)
