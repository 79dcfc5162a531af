"""Begins TLS on a connection, and leaves nothing in memory if that fails."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator


@contextlib.contextmanager
def freed_if_tls_fails() -> Iterator[None]:
    """Whoever begins TLS in this context is freed with everything if that fails.

    asyncio's function keeps what it waits for, which keeps the error, whose traceback keeps that
    function, the connection and whoever has asked for it: a circle, left to Python's collector.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
