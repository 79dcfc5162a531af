"""Waiting for conditions, for as long as a busy machine may take."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

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


@overload
async def until(
    condition: Callable[[], Coroutine[None, None, T | None]],
    describe: str = ...,
    *,
    until: Callable[[T], object] = ...,
) -> T: ...
@overload
async def until(
    condition: Callable[[], T | None],
    describe: str = ...,
    *,
    until: Callable[[T], object] = ...,
) -> T: ...
async def until(
    condition: Callable[[], Any],
    describe: str = "the condition",
    *,
    until: Callable[[Any], object] = bool,
) -> Any:
    """Wait in an event loop for a value that is true or as demanded; return the value.

    The condition may be a plain or async function.
    """
    return await wait_until_async(condition, until=until, describe=describe, interval_s=INTERVAL_S)
