"""Waiting for a coroutine or an event, whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Final

_REPEATED_AFTER_S: Final = 0.5


async def unless_set(awaitable: Awaitable[Any], event: asyncio.Event) -> bool:
    """Await something; False if ``event`` was set first and it was cancelled.

    Raises what the awaitable raises.
    """
    running = asyncio.ensure_future(awaitable)
    stopping = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            return False
        await running
        return True
    finally:
        await cancel([running, stopping])


async def first_of(*events: asyncio.Event) -> None:
    """Return when one of the events is set."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(waiting)


async def cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait for their end, whatever it is.

    A cancellation is repeated as long as a task goes on: ``asyncio.wait_for`` before Python 3.12
    returns the result instead if that arrives at the same moment (python/cpython#86296), and a task
    that serves in a loop would then never end.
    """
    tasks = tuple(tasks)
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_REPEATED_AFTER_S)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # it counts as retrieved
