"""Waiting for conditions, for as long as a busy machine may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sandbox import wait_until, wait_until_async

T = TypeVar("T")

DEADLINE_S = 60.0
INTERVAL_S = 0.005


def wait_for(
    condition: Callable[[], T | None],
    describe: str = "the condition",
    *,
    until: Callable[[T], object] = bool,
) -> T:
    """Wait, with the thread, for a value that is true or as demanded; return the value."""
    return wait_until(
        condition, until=until, describe=describe, timeout_s=DEADLINE_S, interval_s=INTERVAL_S
    )


async def until(
    condition: Callable[[], T | None],
    describe: str = "the condition",
    *,
    until: Callable[[T], object] = bool,
) -> T:
    """Wait in an event loop for a value that is true or as demanded; return the value."""
    return await wait_until_async(
        condition, until=until, describe=describe, timeout_s=DEADLINE_S, interval_s=INTERVAL_S
    )
