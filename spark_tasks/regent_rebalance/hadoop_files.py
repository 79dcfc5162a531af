"""Files and folders of Hadoop's file systems, as the driver of a Spark job sees them.

Contents pass by files of the driver's machine, which Hadoop copies piece by piece: as an argument
of a call into the JVM a content is there several times, in the driver and in the JVM's heap.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.secret_urls import masked, shown

JVM_ENDED = (Py4JError, ConnectionError)
"""What a call into a JVM raises that has ended, or ends meanwhile, where it is no Py4JJavaError."""

HAS_ENDED = "Spark's JVM has ended, as it does for want of memory"

_NO_ROOM = "No space left on device"
_NO_FILE_SYSTEM = ("UnsupportedFileSystemException", "ClassNotFoundException")


def hadoop_url(url: str) -> str:
    """A URL with the only name that Hadoop has for S3."""
    return re.sub(r"^s3://", "s3a://", url, flags=re.IGNORECASE)


def check_file_system(context: Any, url: str) -> None:
    """Whether a URL can be written to: that Hadoop has a file system for it, and no folder there.
    Asked before work is done for what is written.

    Args:
        context: A SparkContext.

    Raises:
        InvalidInputError: It has none, or a folder, or does not answer.
    """
    with _problems(url, "reached"):
        _require_no_folder(url, *_located(context, url))


def read(context: Any, url: str) -> bytes:
    """The content of a file.

    Args:
        context: A SparkContext.

    Raises:
        InvalidInputError: It cannot be read.
    """
    with _problems(url, "read"), _local_file() as local:
        path, files = _located(context, url)
        # A folder would be copied with all that is in it.
        if not files.getFileStatus(path).isFile():
            raise InvalidInputError(f"{shown(url)} is no file: give the snapshot's own URL")
        # Without a file of checksums beside it.
        files.copyToLocalFile(False, path, _path(context, f"file://{local}"), True)
        return local.read_bytes()


def write(context: Any, url: str, content: bytes) -> None:
    """Write a file; an existing one is replaced.

    Args:
        context: A SparkContext.

    Raises:
        InvalidInputError: It cannot be written, or is a folder.
    """
    with _problems(url, "written"), _local_file() as local:
        path, files = _located(context, url)
        _require_no_folder(url, path, files)
        local.write_bytes(content)
        files.copyFromLocalFile(False, True, _path(context, f"file://{local}"), path)


def names_in(context: Any, url: str) -> list[str]:
    """The names of what is in a folder, sorted; none if it does not exist. Raises Py4JJavaError.

    Args:
        context: A SparkContext.
    """
    path, files = _located(context, url)
    if not files.exists(path):
        return []
    return sorted(status.getPath().getName() for status in files.listStatus(path))


def first_line(error: Py4JJavaError) -> str:
    """What Java says, in a line."""
    lines = str(error.java_exception.toString()).splitlines()
    return lines[0] if lines else "no message"


@contextmanager
def _problems(url: str, done: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        said = masked(first_line(error), url)
        if any(each in said for each in _NO_FILE_SYSTEM):
            said += ": give Spark the jars of this file system (docs/spark.md), or another URL"
        if done == "read" and _NO_ROOM in said:
            said += f": {_more_room()}"
        raise InvalidInputError(f"{shown(url)} cannot be {done}: {said}") from error
    except JVM_ENDED as error:
        raise InvalidInputError(f"{shown(url)} cannot be {done}: {HAS_ENDED}") from error
    except OSError as error:
        raise InvalidInputError(
            f"{shown(url)} cannot be {done} by way of a temporary file: {error.strerror}: "
            f"{_more_room()}"
        ) from error


def _more_room() -> str:
    # gettempdir() raises where no folder takes a file.
    folder = tempfile.tempdir or "a temporary folder"
    return f"make room in {folder}, or name another folder (TMPDIR)"


def _require_no_folder(url: str, path: Any, files: Any) -> None:
    """Into a folder Hadoop would copy, under the name of the temporary file."""
    if files.exists(path) and files.getFileStatus(path).isDirectory():
        raise InvalidInputError(f"{shown(url)} is a folder: give the plan's own URL")


@contextmanager
def _local_file() -> Iterator[Path]:
    """A file that is to be; for Hadoop its path is written as it is, not quoted."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "content"


def _located(context: Any, url: str) -> tuple[Any, Any]:
    """A path of Hadoop, and the file system that has it."""
    path = _path(context, hadoop_url(url))
    return path, path.getFileSystem(context._jsc.hadoopConfiguration())


def _path(context: Any, url: str) -> Any:
    return context._jvm.org.apache.hadoop.fs.Path(url)
