"""Waiting for an event loop instead of for a number of its turns."""

from __future__ import annotations

import asyncio
from typing import Any


async def until_idle() -> None:
    """Run everything that is ready, and what becomes ready by it. Timers, sockets and threads are
    not waited for."""
    loop: Any = asyncio.get_running_loop()
    await asyncio.sleep(0)
    while loop._ready:  # noqa: ASYNC110 - the loop itself is what is waited for
        await asyncio.sleep(0)
