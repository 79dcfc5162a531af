"""Whether a cancellation is meant for who sees it."""

from __future__ import annotations

import asyncio


def is_to_end() -> bool:
    """Whether somebody has cancelled the task that this runs in. Else a CancelledError comes from
    within: the task awaited what somebody else had cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
