"""Snapshots and plans as Parquet: a row for each partition, the rest as JSON in the metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.json_files import (
    BrokerDocument,
    SummaryDocument,
    broker_documents,
    brokers_of,
    plan_from,
    summary_document,
)
from regent_rebalance.plan import Plan, changes_of
from regent_rebalance.ragged import Ints, ints
from regent_rebalance.snapshot import UNKNOWN, Rows, Snapshot, snapshot_of

_T = TypeVar("_T")
_BROKERS, _PLAN = b"regent.brokers", b"regent.plan"
_SNAPSHOT_COLUMNS = {
    "topic": pa.dictionary(pa.int32(), pa.string()),
    "partition": pa.int32(),
    "replicas": pa.list_(pa.int32()),
    "leader": pa.int32(),
    "sizes": pa.list_(pa.int64()),
}
_RATE_COLUMNS = {"bytesIn": pa.int64(), "bytesOut": pa.int64()}
"""Columns that a snapshot may lack."""

_PLAN_COLUMNS = {
    "topic": pa.dictionary(pa.int32(), pa.string()),
    "partition": pa.int32(),
    "replicas": pa.list_(pa.int32()),
    "previous": pa.list_(pa.int32()),
    "bytes": pa.int64(),
    "batch": pa.int32(),
}


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot; an existing file is replaced."""
    ids = snapshot.brokers.ids
    leaders = np.where(snapshot.leader == UNKNOWN, UNKNOWN, ids[snapshot.leaders()])
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(snapshot.topic), pa.array(snapshot.topics)),
        pa.array(snapshot.partition),
        _lists(snapshot.offsets, ids[snapshot.replicas].astype(np.int32)),
        pa.array(leaders.astype(np.int32)),
        _lists(snapshot.offsets, snapshot.sizes),
        pa.array(snapshot.bytes_in),
        pa.array(snapshot.bytes_out),
    ]
    brokers = msgspec.json.encode(broker_documents(snapshot.brokers))
    types = _SNAPSHOT_COLUMNS | _RATE_COLUMNS
    _write(columns, types, {_BROKERS: brokers}, path)


def read_snapshot(path: Path) -> Snapshot:
    """Raises InvalidInputError for a file that is no snapshot."""
    table, document = _read(path, _SNAPSHOT_COLUMNS, _BROKERS)
    brokers = _document(document, list[BrokerDocument], path)
    lengths, replicas = _flat(table, "replicas")
    size_lengths, sizes = _flat(table, "sizes")
    if not np.array_equal(lengths, size_lengths):
        raise InvalidInputError(f"{path}: a partition has more or fewer sizes than replicas")
    return snapshot_of(
        brokers_of(brokers),
        Rows(
            topic=table["topic"].to_pylist(),
            partition=_column(table, "partition"),
            lengths=lengths,
            replicas=replicas,
            leader=_column(table, "leader"),
            sizes=sizes,
            bytes_in=_rates(table, "bytesIn", path),
            bytes_out=_rates(table, "bytesOut", path),
        ),
    )


def _rates(table: Any, name: str, path: Path) -> Ints | None:
    if name not in table.column_names:
        return None
    if table[name].null_count:
        raise InvalidInputError(f"{path}: column {name} has empty cells: fill them, or use -1")
    return _column(table, name)


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan; an existing file is replaced."""
    changes = plan.changes
    columns = [
        pa.array(changes.topic, pa.string()).dictionary_encode(),
        pa.array(changes.partition.astype(np.int32)),
        _lists(changes.after_offsets, changes.after.astype(np.int32)),
        _lists(changes.before_offsets, changes.before.astype(np.int32)),
        pa.array(changes.bytes),
        pa.array(plan.batch_numbers().astype(np.int32)),
    ]
    _write(columns, _PLAN_COLUMNS, {_PLAN: msgspec.json.encode(summary_document(plan))}, path)


def read_plan(path: Path) -> Plan:
    """Raises InvalidInputError for a file that is no plan."""
    table, document = _read(path, _PLAN_COLUMNS, _PLAN)
    after_lengths, after = _flat(table, "replicas")
    before_lengths, before = _flat(table, "previous")
    changes = changes_of(
        tuple(table["topic"].to_pylist()),
        _column(table, "partition"),
        (_offsets(before_lengths), before),
        (_offsets(after_lengths), after),
        _column(table, "bytes"),
    )
    summary = _document(document, SummaryDocument, path)
    return plan_from(changes, _column(table, "batch"), summary, source=str(path))


def _write(
    columns: list[Any], types: dict[str, Any], metadata: dict[bytes, bytes], path: Path
) -> None:
    schema = pa.schema(list(types.items()), metadata=metadata)
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, compression="zstd")


def _read(path: Path, types: dict[str, Any], key: bytes) -> tuple[Any, bytes]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(f"{path} is no Parquet file: {error}") from error
    missing = [name for name in types if name not in table.column_names]
    metadata = table.schema.metadata or {}
    if missing or key not in metadata:
        lacks = ", ".join(
            [*(f"column {name}" for name in missing), *([key.decode()] * (key not in metadata))]
        )
        raise InvalidInputError(f"{path} lacks {lacks}: docs/planner.md has the format")
    nulls = [name for name in types if table[name].null_count]
    if nulls:
        raise InvalidInputError(f"{path}: column {nulls[0]} has empty cells: fill them, or use -1")
    return table, metadata[key]


def _document(content: bytes, kind: type[_T], path: Path) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"{path}: its metadata does not decode: {error}") from error


def _lists(offsets: Ints, values: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


def _flat(table: Any, name: str) -> tuple[Ints, Ints]:
    column = table[name].combine_chunks()
    return np.diff(ints(column.offsets)), ints(column.flatten())


def _column(table: Any, name: str) -> Ints:
    return ints(table[name].to_numpy())


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
