"""Simulated time: it moves on command, and then what is due happens, in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True, slots=True)
class Alarm:
    """Something that happens at a time. ``number`` breaks ties in the order of arming.

    Attributes:
        recurs: Whether it arms itself again and again: who waits for an end does not wait for it.
    """

    at_ms: int
    number: int
    action: Callable[[], None] = field(compare=False)
    is_cancelled: bool = field(default=False, compare=False)
    recurs: bool = field(default=False, compare=False)


class Clock:
    """Milliseconds since an arbitrary moment."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._number = 0
        self._alarms: list[Alarm] = []

    def now_ms(self) -> int:
        return self._now_ms

    def after(self, delay_ms: int, action: Callable[[], None], *, recurs: bool = False) -> Alarm:
        """Have something happen later. To call it off, set ``is_cancelled`` on the result."""
        self._number += 1
        alarm = Alarm(self._now_ms + delay_ms, self._number, action, recurs=recurs)
        heapq.heappush(self._alarms, alarm)
        return alarm

    def advance(self, duration_ms: int) -> None:
        """Let time pass; what becomes due happens at its own time."""
        until_ms = self._now_ms + duration_ms
        while (at_ms := self.next_at_ms()) is not None and at_ms <= until_ms:
            self._now_ms = max(self._now_ms, at_ms)
            heapq.heappop(self._alarms).action()
        self._now_ms = until_ms

    def next_at_ms(self) -> int | None:
        """When the next thing happens, None if nothing is armed."""
        while self._alarms and self._alarms[0].is_cancelled:
            heapq.heappop(self._alarms)
        return self._alarms[0].at_ms if self._alarms else None

    def next_single_at_ms(self) -> int | None:
        """The same without what recurs."""
        return min(
            (a.at_ms for a in self._alarms if not (a.is_cancelled or a.recurs)), default=None
        )
