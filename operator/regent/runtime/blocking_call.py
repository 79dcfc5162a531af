"""Calls that block, at the end of what lives in a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


async def call_blocking(function: Callable[..., object], *arguments: Any) -> None:
    """Call something that blocks: in a thread, and where none can be started, in the loop.

    For what has to be done at the end, and does no harm if it is done again later: the executor
    keeps a call for which it found no thread.
    """
    try:
        call = asyncio.get_running_loop().run_in_executor(None, function, *arguments)
    except RuntimeError:  # "can't start new thread"
        function(*arguments)
    else:
        await call
