"""Keeps a library that logs every attempt from flooding the log."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

_SILENT_S: Final = 30.0
"""Between two entries that say the same."""

_KEPT: Final = 100
"""Entries that are remembered."""


class SilenceAboutRepeats(logging.Filter):
    """Lets an entry through unless the same one was let through less than 30 s ago. Errors always,
    and what only a debugging person sees.

    May be used by several threads.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR or record.levelno < logging.INFO:
            return True
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            return True  # logging reports what cannot be formatted; an error here ends the caller
        now = self._clock()
        with self._lock:
            logged_at = self._logged_at.get(text)
            if logged_at is not None and now - logged_at < _SILENT_S:
                return False
            self._logged_at.pop(text, None)
            self._logged_at[text] = now
            while len(self._logged_at) > _KEPT:
                del self._logged_at[next(iter(self._logged_at))]
        return True
