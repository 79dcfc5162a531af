"""Histories that are written down moment by moment."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from regent_rebalance.sample_files import encode_sample
from regent_rebalance.samples import BrokerSample, PartitionSample, Sample

NOON = 1_795_348_800_000
"""2026-11-22, 12:00 UTC."""

MINUTE = 60_000


def at(minute: float, *partitions: PartitionSample, brokers: Iterable[int] = (1, 2)) -> Sample:
    """A sample, minutes after noon, of brokers that have 1,000,000 bytes each."""
    listed = [BrokerSample(id_, "a", True, 1_000_000) for id_ in brokers]
    return Sample("c1", NOON + int(minute * MINUTE), listed, partitions)


def partition(
    size: int | None = 1000,
    end: int | None = 100,
    *,
    topic: str = "t",
    number: int = 0,
    leader: int | None = 1,
    replicas: tuple[int, ...] = (1,),
    sizes: tuple[int | None, ...] | None = None,
    start: int | None = 0,
    topic_id: str | None = "A",
    compacted: bool | None = False,
    bytes_in: float | None = None,
    bytes_out: float | None = None,
    created: int | None = None,
) -> PartitionSample:
    """All replicas have one size, unless others are given."""
    each = (size,) * len(replicas) if sizes is None else sizes
    return PartitionSample(
        topic,
        number,
        topic_id,
        leader,
        replicas,
        each,
        start,
        end,
        compacted,
        bytes_in,
        bytes_out,
        created,
    )


def frames(spark: Any, samples: Iterable[Sample]) -> tuple[Any, Any]:
    """Partitions and brokers of samples, as DataFrames."""
    contents = [encode_sample(sample) for sample in samples]
    partitions, brokers = (
        pa.concat_tables(pq.read_table(io.BytesIO(each[kind])) for each in contents)
        for kind in ("partitions", "brokers")
    )
    return spark.createDataFrame(partitions), spark.createDataFrame(brokers)
