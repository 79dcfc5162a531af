"""Waiting for conditions, for as long as a busy machine may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sandbox import wait_until, wait_until_async
from sandbox.waiting import DEADLINE_S

__all__ = ["DEADLINE_S", "until", "wait_for"]

T = TypeVar("T")

INTERVAL_S = 0.005


def wait_for(
    condition: Callable[[], T | None],
    describe: str = "the condition",
    *,
    until: Callable[[T], object] = bool,
) -> T:
    """Wait, with the thread, for a value that is true or as demanded; return the value."""
    return wait_until(condition, until=until, describe=describe, interval_s=INTERVAL_S)


async def until(
    condition: Callable[[], T | None],
    describe: str = "the condition",
    *,
    until: Callable[[T], object] = bool,
) -> T:
    """Wait in an event loop for a value that is true or as demanded; return the value."""
    return await wait_until_async(condition, until=until, describe=describe, interval_s=INTERVAL_S)
