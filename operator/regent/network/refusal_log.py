"""Who was refused lately, and why: for the log and for ``regent status``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from regent.protocol.serving import Refusal

logger = logging.getLogger(__name__)

_KEPT: Final = 50
"""Refusals that are remembered. Whoever has not authenticated can cause any number."""

_SHOWN_S: Final = 600.0
"""For so long a refusal is shown after it has happened for the last time."""

_SILENT_S: Final = 60.0
"""Between two log entries about the same refusal."""

_ENTRIES_PER_MINUTE: Final = 20
"""Log entries about refusals, whatever they are."""


class _Known(NamedTuple):
    last_at: float
    logged_at: float


class RefusalLog:
    """Remembers refusals, and logs each once in a while. The newest are kept.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Refusal, _Known] = {}
        self._minute_began_at = float("-inf")
        self._entries = 0
        self._not_logged = 0

    def add(self, refusal: Refusal) -> None:
        """Somebody has been refused."""
        now = self._clock()
        known = self._known.pop(refusal, None)
        logged_at = float("-inf") if known is None else known.logged_at
        if now - logged_at >= _SILENT_S and self._may_log(now):
            self._log(refusal)
            logged_at = now
        else:
            self._not_logged += 1
        self._known[refusal] = _Known(now, logged_at)
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]

    def recent(self) -> Sequence[Mapping[str, str]]:
        """The refusals of the last minutes, the newest first. May be called from any thread."""
        since = self._clock() - _SHOWN_S
        known = list(self._known.items())
        return [refusal.fields() for refusal, each in reversed(known) if each.last_at >= since]

    def _may_log(self, now: float) -> bool:
        if now - self._minute_began_at >= _SILENT_S:
            self._minute_began_at, self._entries = now, 0
        self._entries += 1
        return self._entries <= _ENTRIES_PER_MINUTE

    def _log(self, refusal: Refusal) -> None:
        more, self._not_logged = self._not_logged, 0
        logger.warning("peer refused", extra={**refusal.fields(), "not_logged_before": more})
