"""What asyncio logs where a connection cannot be accepted, as the process may open no more files:
each attempt, with a traceback. It tries again every second, and once in a while is enough to say.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

SILENT_S: Final = 30.0
"""Between two entries."""

MESSAGE: Final = "Connections are not accepted: raise the limit of open files"

_OF_ASYNCIO: Final = "socket.accept() out of system resource"


class AcceptFailures(logging.Filter):
    """For the logger of asyncio. Other entries are let through as they are.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged_at = -SILENT_S

    def filter(self, record: logging.LogRecord) -> bool:
        if not str(record.msg).startswith(_OF_ASYNCIO):
            return True
        now = self._clock()
        if now - self._logged_at < SILENT_S:
            return False
        self._logged_at = now
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        record.msg, record.args, record.exc_info = MESSAGE, (), None
        record.__dict__["error"] = str(error)
        return True
