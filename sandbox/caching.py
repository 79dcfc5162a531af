"""The cache of downloaded and built things, shared by all sandboxes of a user.

An entry is a directory named after what it holds and a hash of everything that decides its
content. It is made in a temporary directory beside its place and renamed into it, so it is
either complete or absent; a lock file per entry keeps two processes from making the same one.
Entries are never changed afterwards. Deleting the cache, or any entry, is always safe.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from sandbox.errors import naming_the_folder
from sandbox.progress import note

DIRECTORY_VARIABLE = "REGENT_SANDBOX_CACHE"


def cache_directory() -> Path:
    """`$REGENT_SANDBOX_CACHE`, else `$XDG_CACHE_HOME/regent-sandbox`, else below `~/.cache`."""
    if own := os.environ.get(DIRECTORY_VARIABLE):
        return Path(own).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "regent-sandbox"


def content_hash(*parts: str | bytes) -> str:
    """A short name for everything that decides an entry's content."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:16]


def find_entry(name: str) -> Path | None:
    """The entry's directory, or None when it was not made yet."""
    path = cache_directory() / name
    return path if path.is_dir() else None


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The entry's directory, made by `make(empty directory)` when it is not there yet.

    `make` must not record the directory's path inside it: the directory is renamed afterwards.
    When `make` raises, nothing is left behind.
    """
    if (path := find_entry(name)) is not None:
        return path
    path = cache_directory() / name
    with exclusive(name):
        if path.is_dir():  # another process made it meanwhile
            return path
        with naming_the_folder(path.parent, variable=DIRECTORY_VARIABLE):
            temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.making-", dir=path.parent))
        try:
            make(temporary)
            temporary.chmod(0o755)
            temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return path


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Be the only one in a block of this name; the kernel frees it when the holder ends.

    Raises:
        FolderError: The cache cannot be written.
    """
    path = cache_directory() / name
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with naming_the_folder(path.parent, variable=DIRECTORY_VARIABLE):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            note(f"waiting for another process that is busy with {name}")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
