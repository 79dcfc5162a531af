"""Permits to start Java servers: as many at a time as the machine has processors.

A broker needs some seconds of a processor to start. Where several workers of a test run start whole
clusters at once, each start takes minutes, and sessions of servers that run already expire.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

_PATIENCE_S = 60.0
_POLL_S = 0.02


@contextmanager
def start_permit() -> Iterator[None]:
    """Hold a permit while a server, or a cluster, starts.

    The kernel frees the permits of a process that ends. A server that never becomes ready holds its
    permit until its own timeout, so nothing waits longer than a minute for a permit.
    """
    deadline = time.monotonic() + _PATIENCE_S
    held = free_permit()
    while held is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        held = free_permit()
    try:
        yield
    finally:
        if held is not None:
            held.release()


def free_permit() -> FileLock | None:
    """Take a permit that no process holds, if there is one. Its release gives it back."""
    folder = Path(tempfile.gettempdir()) / f"regent-sandbox-starts-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for number in range(os.cpu_count() or 1):
        lock = FileLock(folder / f"{number}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        return lock
    return None
