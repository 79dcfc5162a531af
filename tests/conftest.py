"""For all tests: how they run side by side, what is printed at the end, and no thread is left.

A thread that outlives its test works on in the background of others: it keeps connections, logs,
and draws random numbers that hypothesis then finds missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import hypothesis
import pytest

pytest_plugins = ("tests.support.distribution", "tests.support.figures")

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("regent", deadline=None)
hypothesis.settings.load_profile("regent")

_SHARED = ("asyncio_", "pytest_timeout", "execnet")
"""Threads of pools and of the test runner that live as long as the process."""


@pytest.fixture(autouse=True, scope="module")
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and not _is_shared(t)]
    for thread in left:
        thread.join(timeout=30)
    names = [thread.name for thread in left if thread.is_alive()]
    assert not names, f"threads left behind: {names}"


def _is_shared(thread: threading.Thread) -> bool:
    return thread.name.startswith(_SHARED)
