"""How often a replica may depose another one because it suspects that one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec


class SuspicionLimit(msgspec.Struct):
    """A wait after each take-over by suspicion, which doubles; pure, by the times it is given.

    A suspicion may be wrong as long as its cause lasts, such as a network that swallows heartbeats.
    Two replicas that depose each other in turn would be worse than a late take-over. So a deposed
    replica waits as well.

    A right suspicion costs no wait. A suspicion was right when the registrations of all suspects
    are gone. A dead replica is known to be dead at once, and neither waits before nor after its
    take-over. The exception is a dead replica that this one has suspected before under the same
    session: it has led since, so the earlier suspicion was wrong.

    Attributes:
        first_ms: The wait after the first take-over, and after having been deposed.
        max_ms: Its bound. Twice as long without a take-over, it begins anew.
    """

    first_ms: int
    max_ms: int
    _wait_ms: int = 0
    _began_ms: int = 0
    _suspects: tuple[str, ...] = ()
    _deposed_wait_ms: int = 0
    _deposed_ms: int = 0

    def allows(
        self, now_ms: int, *, registered: Collection[str], dead: Collection[str] = ()
    ) -> bool:
        """Whether a suspicion may be acted upon now.

        Args:
            registered: Names of the replicas' registrations that there are.
            dead: Names of the registrations of the replicas to be deposed, if all of them are dead.
        """
        # A clock that was set back must not prolong it.
        self._began_ms = min(self._began_ms, now_ms)
        self._deposed_ms = min(self._deposed_ms, now_ms)
        if self._suspects and not any(suspect in registered for suspect in self._suspects):
            self._wait_ms, self._suspects = 0, ()
        if self._is_certain(dead):
            return True
        has_waited = now_ms - self._began_ms >= self._wait_ms
        return has_waited and now_ms - self._deposed_ms >= self._deposed_wait_ms

    def note_take_over(
        self, now_ms: int, suspects: Iterable[str], *, dead: Collection[str] = ()
    ) -> None:
        """Record that the suspicion was acted upon.

        Args:
            suspects: Names of the registrations of all suspected replicas.
            dead: As in :meth:`allows`.
        """
        if self._is_certain(dead):
            self._suspects = (*self._suspects, *suspects)
            return
        is_forgiven = now_ms - self._began_ms >= 2 * self.max_ms
        doubled = 0 if is_forgiven else 2 * self._wait_ms
        self._wait_ms = min(max(doubled, self.first_ms), self.max_ms)
        self._began_ms = now_ms
        self._suspects = tuple(suspects)

    def note_deposed(self, now_ms: int) -> None:
        """Another one has taken over from this one."""
        self._deposed_wait_ms = max(self._wait_ms, self.first_ms)
        self._deposed_ms = now_ms

    def _is_certain(self, dead: Collection[str]) -> bool:
        return bool(dead) and not any(name in self._suspects for name in dead)
