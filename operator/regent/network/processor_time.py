"""How much of the processor's time a coroutine takes."""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def metered(
    work: Coroutine[Any, Any, T], on_spent: Callable[[float], None]
) -> Generator[Any, Any, T]:
    """Run a coroutine in the task that awaits this.

    Args:
        on_spent: Gets the seconds that each of its steps has taken. Waiting takes none.
    """
    value: Any = None
    error: BaseException | None = None
    while True:
        began = time.thread_time()
        try:
            waits_for = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            on_spent(time.thread_time() - began)
            value = error = None  # an error is not to be in a circle with this frame
        try:
            value = yield waits_for
        except BaseException as thrown:  # noqa: BLE001 - a cancellation, too, is the coroutine's
            error = thrown
