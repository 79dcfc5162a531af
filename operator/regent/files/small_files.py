"""Files that settings name, read within bounds: no device without an end, no pipe that nobody
writes to, nothing that is no such file by its size."""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 1 << 20

_PIPE_TIMEOUT_S: Final = 10.0
_READ_BYTES: Final = 1 << 16


class UnusableFileError(OSError):
    """The file is none that can be read, or too large. The message names it."""


def require_small(path: Path | str) -> None:
    """Hold a file against the bounds before somebody else reads it, as OpenSSL does.

    Raises:
        OSError: If it is no regular file, is larger than ``MAX_BYTES``, or cannot be looked at.
    """
    found = Path(path).stat()
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFileError(f"{path} is {_kind(found.st_mode)}, and must be a regular file")
    if found.st_size > MAX_BYTES:
        raise _too_large(path)


def require_end(path: Path | str) -> None:
    """Hold a file of any size against a device, which may have no end.

    Raises:
        OSError: If it is one, or cannot be looked at.
    """
    mode = Path(path).stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise UnusableFileError(f"{path} is a device: give a file, or a pipe")


def read_small(path: Path | str, *, pipe_timeout_s: float = _PIPE_TIMEOUT_S) -> bytes:
    """The contents of a regular file, of a pipe, as a shell's ``<(command)`` makes one, or of a
    device, such as ``/dev/null``.

    Args:
        pipe_timeout_s: How long what is no regular file may take to its end.

    Raises:
        OSError: If it is larger than ``MAX_BYTES``, has no end in time, or cannot be read.
    """
    # Without O_NONBLOCK opening a pipe waits for somebody who writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise UnusableFileError(f"{path} is a directory")
        contents = bytearray()
        deadline = time.monotonic() + pipe_timeout_s
        while True:
            if not stat.S_ISREG(mode):
                _wait(descriptor, path, until=deadline)
            piece = os.read(descriptor, _READ_BYTES)
            if not piece:
                return bytes(contents)
            contents += piece
            if len(contents) > MAX_BYTES:
                raise _too_large(path)
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path | str, *, until: float) -> None:
    # Not select(), which knows no descriptors above 1023.
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    if not waiting.poll(max(until - time.monotonic(), 0.0) * 1000):
        raise UnusableFileError(f"{path} has not come to an end in time: who writes to it?")


def _too_large(path: Path | str) -> UnusableFileError:
    return UnusableFileError(f"{path} is larger than {MAX_BYTES:,} bytes: it must be another file")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "a device"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket"
