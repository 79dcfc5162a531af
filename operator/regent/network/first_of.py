"""Waiting for whatever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


async def first_of(*waits: Coroutine[object, object, object]) -> None:
    """Wait until one of several waits ends; the others are over, too, when this returns."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
