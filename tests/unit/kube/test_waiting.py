"""Tasks that are ended: all of them, also one that loses a cancellation."""

from __future__ import annotations

import asyncio

from regent.kube.waiting import cancel
from sandbox.waiting import DEADLINE_S


async def test_a_task_that_loses_a_cancellation_is_ended_all_the_same() -> None:
    """As in ``wait_for`` of Python 3.11, whose result arrives together with the cancellation."""
    rounds = 0

    async def serve() -> None:
        nonlocal rounds
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        while True:
            rounds += 1
            try:
                await answer
            except asyncio.CancelledError:
                if rounds > 1:
                    raise
                answer = asyncio.get_running_loop().create_future()

    task = asyncio.create_task(serve())
    await asyncio.sleep(0)
    await asyncio.wait_for(cancel((task,)), timeout=DEADLINE_S)
    assert task.cancelled()
    assert rounds == 2


async def test_what_has_failed_counts_as_noticed() -> None:
    async def fail() -> None:
        raise ValueError("a defect")

    task = asyncio.create_task(fail())
    await asyncio.wait((task,))
    await cancel((task,))
    assert task.done()
