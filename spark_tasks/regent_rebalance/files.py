"""Snapshot and plan files: Parquet if the name ends in .parquet, JSON otherwise."""

from __future__ import annotations

from pathlib import Path

from regent_rebalance import json_files
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.plan import Plan
from regent_rebalance.snapshot import Snapshot

_PARQUET = ".parquet"


def load_snapshot(path: Path) -> Snapshot:
    """Raises InvalidInputError for a file that is no snapshot."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        return parquet_files.read_snapshot(path)
    return json_files.decode_snapshot(_read(path), source=str(path))


def save_snapshot(snapshot: Snapshot, path: Path) -> None:
    """An existing file is replaced."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        parquet_files.write_snapshot(snapshot, path)
    else:
        path.write_bytes(json_files.encode_snapshot(snapshot))


def load_plan(path: Path) -> Plan:
    """Raises InvalidInputError for a file that is no plan."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        return parquet_files.read_plan(path)
    return json_files.decode_plan(_read(path), source=str(path))


def save_plan(plan: Plan, path: Path) -> None:
    """An existing file is replaced."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        parquet_files.write_plan(plan, path)
    else:
        path.write_bytes(json_files.encode_plan(plan))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from error
