"""What may happen any number of times is logged once in a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SILENT_S: Final = 60.0
"""Between two log entries about the same thing."""


class LogPauses:
    """When each of many things was last logged. Those of the last minute are remembered.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at: dict[str, float] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._logged_at)

    def is_over(self, key: str) -> bool:
        """Whether something is to be logged now; then it has been."""
        now = self._clock()
        while self._logged_at:
            oldest = next(iter(self._logged_at))
            if now - self._logged_at[oldest] < SILENT_S:
                break
            del self._logged_at[oldest]
        if key in self._logged_at:
            return False
        self._logged_at[key] = now
        return True
