from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from regent.network.processor_time import metered
from tests.support.event_loop import until_idle


def busy(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_the_steps_of_a_coroutine_are_counted_and_its_waits_are_not() -> None:
    spent: list[float] = []

    async def work() -> str:
        busy(0.02)
        await asyncio.to_thread(busy, 0.5)
        busy(0.03)
        return "done"

    assert await metered(work(), spent.append) == "done"
    assert len(spent) == 2
    assert 0.05 <= sum(spent) < 0.5


async def test_what_a_coroutine_waits_for_reaches_it() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> int:
        return await future + 1

    task = asyncio.create_task(metered_task(work()))
    await until_idle()
    future.set_result(41)
    assert await task == 42


async def metered_task(work: Coroutine[Any, Any, Any]) -> Any:
    return await metered(work, lambda _: None)


async def test_an_error_of_a_coroutine_is_raised_and_its_time_is_counted() -> None:
    spent: list[float] = []

    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await metered(work(), spent.append)
    assert len(spent) == 1


async def test_a_cancellation_and_a_timeout_reach_a_coroutine() -> None:
    begun, ended = asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    task = asyncio.create_task(metered_task(work()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await metered(work(), lambda _: None)
    assert ended == ["cancelled", "cancelled"]
