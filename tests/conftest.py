"""For all tests: how they run side by side, what is printed at the end, and no thread is left.

A thread that outlives its test works on in the background of others: it keeps connections, logs,
and draws random numbers that hypothesis then finds missing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterator

import hypothesis
import pytest

from tests.support.lasting_threads import lasting_threads, may_last

pytest_plugins = (
    "tests.support.collector",
    "tests.support.distribution",
    "tests.support.early_failures",
    "tests.support.figures",
    "tests.support.program_logs",
    "tests.support.soak",
    "tests.support.stalls",
)

# How long an example takes depends on what else the machine does. The gate tries the same examples
# in each run; ``--hypothesis-profile=soak`` tries new ones, four times as many, and prints how to
# repeat a failure.
hypothesis.settings.register_profile("gate", deadline=None, derandomize=True, max_examples=25)
hypothesis.settings.register_profile("soak", deadline=None, print_blob=True)
hypothesis.settings.load_profile("gate")

_SHARED = ("asyncio_", "pytest_timeout", "execnet")
"""Threads of pools and of the test runner that live as long as the process."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object],
) -> Generator[None, object, object]:
    """Note the threads of fixtures that last for a folder: with parameters they are made anew in
    the middle of a module."""
    if fixturedef.scope not in ("package", "session"):
        return (yield)
    with lasting_threads():
        return (yield)


@pytest.fixture(autouse=True, scope="module")
def _no_thread_is_left() -> Iterator[None]:
    known = set(threading.enumerate())
    yield
    left = [
        thread
        for thread in threading.enumerate()
        if thread not in known and not _is_shared(thread) and not may_last(thread)
    ]
    for thread in left:
        thread.join(timeout=30)
    names = [thread.name for thread in left if thread.is_alive()]
    assert not names, f"threads left behind: {names}"


@pytest.fixture(autouse=True, scope="module")
def _loggers_stay_as_they_are() -> Iterator[None]:
    """Restore levels and handlers: a command configures the log of a process of its own."""
    root, known = logging.root, logging.root.manager.loggerDict
    levels = {name: each.level for name, each in known.items() if isinstance(each, logging.Logger)}
    root_level, handlers = root.level, list(root.handlers)
    yield
    for name, each in known.items():
        if isinstance(each, logging.Logger):
            each.setLevel(levels.get(name, logging.NOTSET))
    root.setLevel(root_level)
    for handler in set(root.handlers).difference(handlers):
        root.removeHandler(handler)


def _is_shared(thread: threading.Thread) -> bool:
    return thread.name.startswith(_SHARED)
