"""An event loop whose clock jumps to the next timer: delays of minutes take no time."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: instead of that the time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everybody waits, and nothing will ever happen")
        self.now += max(0.0, timeout)
        return super().select(0)


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self, selector: _JumpingSelector) -> None:
        self._jumping = selector
        super().__init__(selector)

    def time(self) -> float:
        return self._jumping.now


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in such a loop."""
    loop = _JumpingLoop(_JumpingSelector())
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(_end_the_others())
        loop.close()


def jumping(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in such a loop."""

    @functools.wraps(test)
    def in_jumping_loop(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return in_jumping_loop


async def elapse(seconds: float) -> None:
    """Let time pass. In such a loop that takes none."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()


async def _end_the_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
