"""Files and folders of Hadoop's file systems, as the driver of a Spark job sees them."""

from __future__ import annotations

from typing import Any


def read(session: Any, url: str) -> bytes:
    """The content of a file. Raises Py4JJavaError."""
    path, files = _located(session, url)
    stream = files.open(path)
    try:
        return bytes(session._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
    finally:
        stream.close()


def write(session: Any, url: str, content: bytes) -> None:
    """Write a file; an existing one is replaced. Raises Py4JJavaError."""
    path, files = _located(session, url)
    stream = files.create(path, True)
    try:
        stream.write(bytearray(content))
    finally:
        stream.close()


def names_in(session: Any, url: str) -> list[str]:
    """The names of what is in a folder, sorted; none if it does not exist. Raises Py4JJavaError."""
    path, files = _located(session, url)
    if not files.exists(path):
        return []
    return sorted(status.getPath().getName() for status in files.listStatus(path))


def _located(session: Any, url: str) -> tuple[Any, Any]:
    """A path of Hadoop, and the file system that has it."""
    path = session._jvm.org.apache.hadoop.fs.Path(url)
    return path, path.getFileSystem(session._jsc.hadoopConfiguration())
