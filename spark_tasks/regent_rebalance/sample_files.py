"""Samples as Parquet: the schema of a history (docs/history.md)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from regent_rebalance.history_layout import BROKERS, PARTITIONS
from regent_rebalance.samples import Sample

_TIME: Final = ("time", pa.timestamp("ms", tz="UTC"))

SCHEMAS: Final = {
    BROKERS: pa.schema(
        [
            _TIME,
            ("broker", pa.int32()),
            ("rack", pa.string()),
            ("alive", pa.bool_()),
            ("disk_bytes", pa.int64()),
        ]
    ),
    PARTITIONS: pa.schema(
        [
            _TIME,
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("topic_id", pa.string()),
            ("leader", pa.int32()),
            ("replicas", pa.list_(pa.int32())),
            ("sizes", pa.list_(pa.int64())),
            ("log_start_offset", pa.int64()),
            ("log_end_offset", pa.int64()),
            ("compacted", pa.bool_()),
            ("bytes_in", pa.float64()),
            ("bytes_out", pa.float64()),
            ("created", pa.int64()),
            ("unreadable", pa.string()),
        ]
    ),
}
"""The time, then the fields of :class:`BrokerSample` and :class:`PartitionSample` in order; what of
:class:`LeftOut` is not among those is last."""


def encode_sample(sample: Sample) -> dict[str, bytes]:
    """The content of a sample's files, by their kind. Pages have checksums."""
    return {
        kind: _encoded(schema, sample.moment, _rows(sample, kind))
        for kind, schema in SCHEMAS.items()
    }


def row_count(sample: Sample, kind: str) -> int:
    """How many rows the file of a kind has."""
    return sum(map(len, _rows(sample, kind)))


def _rows(sample: Sample, kind: str) -> tuple[Sequence[Any], ...]:
    """What the rows of a file are, one sort after the other."""
    return (sample.brokers,) if kind == BROKERS else (sample.partitions, sample.left_out)


def _encoded(schema: pa.Schema, moment: int, rows: tuple[Sequence[Any], ...]) -> bytes:
    """A row has the columns that its sort has fields of; the others are null."""
    flat = [row for sort in rows for row in sort]
    columns = [pa.array([moment] * len(flat), schema.field("time").type)]
    for field in list(schema)[1:]:
        values = [getattr(row, field.name, None) for row in flat]
        columns.append(pa.array(values, field.type))
    content = io.BytesIO()
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, content, compression="zstd", write_page_checksum=True)
    return content.getvalue()
