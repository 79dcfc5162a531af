"""How often a replica may depose another one because it suspects that one."""

from __future__ import annotations

import msgspec


class SuspicionLimit(msgspec.Struct):
    """A wait after each take-over by suspicion, which doubles; pure, by the times it is given.

    A suspicion may be wrong as long as its cause lasts: a network that swallows heartbeats, say.
    Two replicas that depose each other in turn would be worse than one that is late. So who was
    deposed waits as well, from the moment at which it would depose.

    Attributes:
        first_ms: The wait after the first take-over.
        max_ms: Its bound. Twice as long without a take-over, it begins anew.
    """

    first_ms: int
    max_ms: int
    _wait_ms: int = 0
    _began_ms: int = 0
    _is_deposed: bool = False

    def allows(self, now_ms: int) -> bool:
        """Whether a suspicion may be acted upon now."""
        # A clock that was set back must not prolong it.
        self._began_ms = min(self._began_ms, now_ms)
        if self._is_deposed:
            self._is_deposed = False
            self._wait_ms = max(self._wait_ms, self.first_ms)
            self._began_ms = now_ms
        return now_ms - self._began_ms >= self._wait_ms

    def note_take_over(self, now_ms: int) -> None:
        """It was acted upon."""
        is_forgiven = now_ms - self._began_ms >= 2 * self.max_ms
        doubled = 0 if is_forgiven else 2 * self._wait_ms
        self._wait_ms = min(max(doubled, self.first_ms), self.max_ms)
        self._began_ms = now_ms

    def note_deposed(self) -> None:
        """Another one has taken over from this one."""
        self._is_deposed = True
