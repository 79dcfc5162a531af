"""Snapshot and plan files: Parquet if the name ends in .parquet, JSON otherwise."""

from __future__ import annotations

import os
import re
import stat
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from regent_rebalance import json_files
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.plan import Plan
from regent_rebalance.snapshot import Snapshot, listed

_PARQUET = ".parquet"

PIPE_MAX_BYTES: Final = 1 << 30
"""Snapshots of several million replicas have less."""

_BATCH: Final = re.compile(r"batch-\d+\.json", re.ASCII)

_PIECE_BYTES: Final = 1 << 20


def load_snapshot(path: Path) -> Snapshot:
    """Raises InvalidInputError for a file that is no snapshot."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        return parquet_files.read_snapshot(path)
    return json_files.decode_snapshot(_read(path), source=str(path))


def save_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Raises as :func:`write_file` does."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        write_file(path, parquet_files.encode_snapshot(snapshot))
    else:
        write_file(path, json_files.encode_snapshot(snapshot))


def load_plan(path: Path) -> Plan:
    """Raises InvalidInputError for a file that is no plan."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        return parquet_files.read_plan(path)
    return json_files.decode_plan(_read(path), source=str(path))


def save_plan(plan: Plan, path: Path) -> None:
    """Raises as :func:`write_file` does."""
    if path.suffix == _PARQUET:
        from regent_rebalance import parquet_files

        write_file(path, parquet_files.encode_plan(plan))
    else:
        write_file(path, json_files.encode_plan(plan))


def save_batches(plan: Plan, folder: Path) -> list[Path]:
    """A file for each batch; existing files of these names are replaced.

    Raises InvalidInputError for a plan without batches, for a cluster that is not, for a folder
    with further batches, or as :func:`write_file` does.
    """
    if plan.details is None:
        raise InvalidInputError(f"plan {plan.hash} has no batches: plan again")
    if plan.details.assumptions:
        raise InvalidInputError(
            f"plan {plan.hash} is for a cluster that does not exist "
            f"({'; '.join(plan.details.assumptions)}): plan for the cluster as it is"
        )
    contents = json_files.encode_batches(plan)
    width = len(str(len(contents)))
    files = [folder / f"batch-{i:0{width}}.json" for i in range(1, len(contents) + 1)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        further = sorted(
            {file for file in folder.iterdir() if _BATCH.fullmatch(file.name)} - {*files}
        )
    except OSError as error:
        raise InvalidInputError(f"{folder} cannot be written: {error.strerror}") from error
    if further:
        # Who carries out all files of the folder would carry out these, too.
        raise InvalidInputError(
            f"{folder} has batches of another plan ({listed([file.name for file in further])}): "
            "remove them, or name another folder"
        )
    for file, content in zip(files, contents, strict=True):
        write_file(file, content)
    return files


def write_file(path: Path, content: bytes) -> None:
    """An existing file is replaced. What there is no room for as a whole is removed.

    Raises InvalidInputError for a file that cannot be written.
    """
    try:
        with path.open("wb") as file:
            try:
                file.write(content)
                file.flush()
            except OSError:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    path.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror}") from error


def _read(path: Path) -> bytes:
    """The contents of a file, or of a pipe up to a bound: neither a device nor who writes to a pipe
    has to come to an end."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                raise InvalidInputError(f"{path} is a device: give a file, or a pipe")
            return file.read() if stat.S_ISREG(mode) else _read_piped(file, path)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from error


def _read_piped(file: BinaryIO, path: Path) -> bytes:
    # In pieces: a single read takes the memory for all that it may return.
    contents = BytesIO()
    while piece := file.read(_PIECE_BYTES):
        contents.write(piece)
        if contents.tell() > PIPE_MAX_BYTES:
            raise InvalidInputError(
                f"{path} has more than {PIPE_MAX_BYTES:,} bytes: is it a snapshot that is written "
                "there? A larger one has to be a file"
            )
    return contents.getvalue()
