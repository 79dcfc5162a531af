"""Threads that may outlive a module of tests: those of servers and clients that a folder shares."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_lasting: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@contextmanager
def lasting_threads() -> Iterator[None]:
    """Let the threads that start meanwhile outlive the module."""
    before = set(threading.enumerate())
    yield
    _lasting.update(set(threading.enumerate()) - before)


def may_last(thread: threading.Thread) -> bool:
    """Whether a thread may outlive the module that has started it."""
    return thread in _lasting
