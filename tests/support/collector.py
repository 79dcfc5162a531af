"""Python's collector of reference cycles: off during collection, and for tests of freed memory."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable the collector: it would visit all modules and tests again and again.

    Modules and tests live until the process ends, so later collections leave them out.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture
def without_the_collector() -> Iterator[None]:
    """Keep reference cycles in memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
