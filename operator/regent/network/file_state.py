"""Whether files have changed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FileState = tuple[tuple[int, int, int] | None, ...]


def state_of(paths: Iterable[Path]) -> FileState:
    """What changes with the contents of files. Links are followed: Secrets are mounted so."""
    return tuple(map(_state_of_one, paths))


def _state_of_one(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
