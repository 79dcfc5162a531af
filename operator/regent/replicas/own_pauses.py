"""Has this process slept, and has it proven since that it is still the controller?

A process that is stopped, or a machine that is suspended, does not notice. What it can see is that
two of its own looks at the clock are further apart than they should be. A replica that another one
holds to be frozen has slept for longer than that, so its successor, if there is one, is not elected
without a pause in here.

A pure reducer, in seconds of any clock that never goes back.
"""

from __future__ import annotations


class OwnPauses:
    """Counts the pauses of this process. From each one on it is in doubt, until a proof that was
    asked for later.

    Args:
        pause_s: Two looks that are further apart are a pause.
        now: Counts as the first look.
    """

    def __init__(self, pause_s: float, now: float) -> None:
        self._pause_s = pause_s
        self._looked_at = now
        self._count = 0
        self._proven = 0

    @property
    def count(self) -> int:
        """How many there were. What is asked for now is a proof for so many."""
        return self._count

    @property
    def is_in_doubt(self) -> bool:
        """Whether there is no proof yet that was asked for after the last pause."""
        return self._proven < self._count

    def looked(self, now: float) -> float | None:
        """The clock was looked at. Returns how long the pause was that has just ended, if any."""
        passed_s = now - self._looked_at
        self._looked_at = now
        if passed_s <= self._pause_s:
            return None
        self._count += 1
        return passed_s

    def proven(self, count: int) -> None:
        """This process is the controller. Proves nothing if it has slept since it was asked for.

        Args:
            count: :attr:`count` when it was asked for.
        """
        self._proven = max(self._proven, count)
