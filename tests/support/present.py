"""Values that may be missing, and are there in a test."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value; a test in which it is missing fails."""
    assert value is not None
    return value
