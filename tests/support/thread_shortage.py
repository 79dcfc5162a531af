"""A limit of processes (``pids.max``, ``RLIMIT_NPROC``) that is reached for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from unittest.mock import patch


@contextlib.contextmanager
def thread_shortage(*, started_by: str | None = None, left: int = 0) -> Iterator[list[str]]:
    """In this block the operating system starts no thread, or only some. Yields the names of those
    refused.
    """
    start = threading.Thread.start
    started: list[str] = []
    refused: list[str] = []

    def start_or_refuse(thread: threading.Thread) -> None:
        if started_by not in (None, threading.current_thread().name):
            start(thread)
        elif len(started) < left:
            started.append(thread.name)
            start(thread)
        else:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")

    with patch.object(threading.Thread, "start", start_or_refuse):
        yield refused
