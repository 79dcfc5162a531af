"""Time that passes when the test says so."""

from __future__ import annotations


class Clock:
    """Seconds since some moment."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s
