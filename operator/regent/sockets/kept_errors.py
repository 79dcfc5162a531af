"""Errors that asyncio keeps with a connection.

The traceback of an error has the frames that it has come through, these have the connection and
whoever uses it, and the connection keeps the error: a circle, left to Python's collector, which
hardly ever looks at what has lived for a while.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator


def clear_frames(error: BaseException | None) -> None:
    """Empty the frames that an error, and what has led to it, came through, if they have ended.

    To be called as soon as it is caught, and not for errors that are also raised elsewhere.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__


@contextlib.contextmanager
def freed_if_tls_fails() -> Iterator[None]:
    """Whoever begins TLS in this context is freed with everything if that fails: asyncio's function
    keeps what it waits for, which keeps the error."""
    try:
        yield
    except BaseException as error:
        clear_frames(error)
        raise
