"""Snapshots and plans as Parquet: a row for each partition, the rest as JSON in the metadata."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from regent_rebalance.snapshot import AMOUNT_MAX, UNKNOWN, Rows, Snapshot, snapshot_of

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

_MAY_BE_UNKNOWN = frozenset({"leader", "sizes", *_RATE_COLUMNS})
"""Columns in which -1 says that nobody knows, or that there is none."""

_PLAN_COLUMNS = {
    "topic": pa.dictionary(pa.int32(), pa.string()),
    "partition": pa.int32(),
    "replicas": pa.list_(pa.int32()),
    "previous": pa.list_(pa.int32()),
    "bytes": pa.int64(),
    "batch": pa.int32(),
}


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """A snapshot as the content of a file."""
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
    return _encoded(columns, types, {_BROKERS: brokers})


def read_snapshot(path: Path) -> Snapshot:
    """Raises InvalidInputError for a file that is no snapshot."""
    table, document = _read(path, _SNAPSHOT_COLUMNS, _BROKERS, _RATE_COLUMNS)
    brokers = _document(document, list[BrokerDocument], path)
    lengths, replicas = _flat(table, "replicas")
    size_lengths, sizes = _flat(table, "sizes")
    if not np.array_equal(lengths, size_lengths):
        raise InvalidInputError(f"{path}: a partition has more or fewer sizes than replicas")
    return snapshot_of(
        brokers_of(brokers),
        Rows(
            topic=_topics(table["topic"].combine_chunks()),
            partition=_column(table, "partition"),
            lengths=lengths,
            replicas=replicas,
            leader=_column(table, "leader"),
            sizes=sizes,
            bytes_in=_rates(table, "bytesIn"),
            bytes_out=_rates(table, "bytesOut"),
        ),
    )


def _topics(column: Any) -> list[str]:
    """The topic of each row. Each name is made once."""
    names = column.dictionary.to_pylist()
    return [names[index] for index in column.indices.to_numpy().tolist()]


def _rates(table: Any, name: str) -> Ints | None:
    return _column(table, name) if name in table.column_names else None


def encode_plan(plan: Plan) -> bytes:
    """A plan as the content of a file."""
    changes = plan.changes
    columns = [
        pa.array(changes.topic, pa.string()).dictionary_encode(),
        pa.array(changes.partition.astype(np.int32)),
        _lists(changes.after_offsets, changes.after.astype(np.int32)),
        _lists(changes.before_offsets, changes.before.astype(np.int32)),
        pa.array(changes.bytes),
        pa.array(plan.batch_numbers().astype(np.int32)),
    ]
    return _encoded(columns, _PLAN_COLUMNS, {_PLAN: msgspec.json.encode(summary_document(plan))})


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


def _encoded(columns: list[Any], types: dict[str, Any], metadata: dict[bytes, bytes]) -> bytes:
    schema = pa.schema(list(types.items()), metadata=metadata)
    table = pa.Table.from_arrays(columns, schema=schema)
    # So a damaged page is seen: else other brokers or sizes would be read from it.
    content = BytesIO()
    pq.write_table(table, content, compression="zstd", write_page_checksum=True)
    return content.getvalue()


def _read(
    path: Path, types: dict[str, Any], key: bytes, optional: dict[str, Any] | None = None
) -> tuple[Any, bytes]:
    """The columns of a file, each of its type, and what its metadata has under a key.

    Args:
        optional: Columns that the file may lack.
    """
    try:
        # pyarrow takes a folder for a table of many files, and gives no reason for one that is not
        # there.
        with path.open("rb"):
            pass
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from error
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        names, metadata = table.column_names, table.schema.metadata or {}
        # Texts are decoded when they are used: what is none is found now.
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} is no intact Parquet file: {error}: write it again"
        ) from error
    missing = [name for name in types if name not in names]
    if missing or key not in metadata:
        lacks = ", ".join(
            [*(f"column {name}" for name in missing), *([key.decode()] * (key not in metadata))]
        )
        raise InvalidInputError(f"{path} lacks {lacks}: docs/planner.md has the format")
    present = types | {name: of for name, of in (optional or {}).items() if name in names}
    columns = {name: _typed(table[name], of, name, path) for name, of in present.items()}
    return pa.table(columns), metadata[key]


def _typed(column: Any, wanted: Any, name: str, path: Path) -> Any:
    """A column as the planner has it. Nothing is rounded, cut off or made up.

    Raises:
        InvalidInputError: It is of another kind, or has empty cells or values that are too large.
    """
    if not _same_kind(column.type, wanted):
        kind = wanted.value_type if pa.types.is_dictionary(wanted) else wanted
        raise InvalidInputError(
            f"{path}: column {name} is {column.type}, and has to be {kind}: docs/planner.md has "
            "the format"
        )
    try:
        column = column.cast(wanted)
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path}: column {name} is no {wanted}: {error}") from error
    values = column.combine_chunks().flatten() if pa.types.is_list(wanted) else column
    if column.null_count or values.null_count:
        way_out = "fill them, or use -1" if name in _MAY_BE_UNKNOWN else "fill them"
        raise InvalidInputError(f"{path}: column {name} has empty cells: {way_out}")
    if values.type == pa.int64() and len(values):
        most = max(map(abs, pc.min_max(values).as_py().values()))
        if most > AMOUNT_MAX:
            raise InvalidInputError(
                f"{path}: column {name} has the amount {most}: give bytes, {AMOUNT_MAX} at most"
            )
    return column


def _same_kind(found: Any, wanted: Any) -> bool:
    kinds = pa.types
    if kinds.is_dictionary(wanted):
        found = found.value_type if kinds.is_dictionary(found) else found
        return bool(kinds.is_string(found) or kinds.is_large_string(found))
    if kinds.is_list(wanted):
        lists = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
        return any(each(found) for each in lists) and _same_kind(
            found.value_type, wanted.value_type
        )
    return bool(kinds.is_integer(found))


def _document(content: bytes, kind: type[_T], path: Path) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
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
