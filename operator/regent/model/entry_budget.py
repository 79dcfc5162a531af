"""How many log entries about the same kind of trouble there may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

ENTRIES: Final = 20
WINDOW_S: Final = 60.0


class EntryBudget:
    """Lets :data:`ENTRIES` entries through in each :data:`WINDOW_S`, and counts the others: what
    refuses one resource often refuses all of them, thousands a minute."""

    def __init__(self) -> None:
        self._began_at = float("-inf")
        self._entries = 0
        self._left_out = 0

    def take(self, now: float) -> int | None:
        """Whether an entry may be written: how many were left out before it; None: it may not.

        Args:
            now: Monotonic seconds.
        """
        if now - self._began_at >= WINDOW_S:
            self._began_at, self._entries = now, 0
        if self._entries >= ENTRIES:
            self._left_out += 1
            return None
        self._entries += 1
        left_out, self._left_out = self._left_out, 0
        return left_out

    def log(self, say: Callable[..., None], message: str, *, now: float, **fields: object) -> None:
        """Write an entry, if it may be, with how many were left out before it.

        Args:
            say: A logger's method.
            now: Monotonic seconds.
            fields: Of the entry.
        """
        left_out = self.take(now)
        if left_out is not None:
            say(message, extra={**fields, "entries_left_out": left_out})
