"""Tests that something is freed by itself: without Python's collector of circles."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def without_the_collector() -> Iterator[None]:
    """What is in a circle of references stays in memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
